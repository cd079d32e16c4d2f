//! Dropping a future drops the values that it holds. The code after its `await` never
//! runs.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::future::pending;
use std::rc::Rc;

use reveille_executor::LocalExecutor;

struct Says(&'static str, Rc<RefCell<Vec<&'static str>>>);

impl Drop for Says {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0);
    }
}

fn main() {
    let said = Rc::new(RefCell::new(Vec::new()));
    let executor = LocalExecutor::new();
    let task = executor.spawn_local({
        let said = said.clone();
        async move {
            let _held = Says("freed", said.clone());
            said.borrow_mut().push("waits");
            pending::<()>().await;
            said.borrow_mut().push("goes on");
        }
    });
    executor.run_until_idle();
    task.abort();
    executor.run_until_idle();
    println!("{:?}", said.borrow());
    assert_eq!(*said.borrow(), ["waits", "freed"]);
}

#[test]
fn what_is_printed_holds() {
    main();
}
