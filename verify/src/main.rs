//! x
use reveille_verify::*;
fn main() {
    let e = oneshot();
    for mode in Mode::ALL {
        let plan = Plan::of(mode, Profile::Quick);
        let w = Watch::default();
        let r = e.run("oneshot", mode, &plan, &w);
        println!(
            "{:?} {} {} programs {} executions {:?} {}",
            mode, r.verdict, r.programs, r.executions, r.seconds, r.bound
        );
        for f in r.failures {
            println!(
                "{} {}\n{}\n{}\n{}",
                f.class, f.program, f.sentence, f.token, f.table
            );
        }
    }
}
