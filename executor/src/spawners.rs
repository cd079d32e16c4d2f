//! `futures::task::Spawn` and `LocalSpawn` for the executors of this crate.
//!
//! A task that they spawn is detached. If a pool has ended, they return an error.

#![forbid(unsafe_code)]

use futures_task::{FutureObj, LocalFutureObj, LocalSpawn, Spawn, SpawnError};

use crate::pool::Handle;
use crate::{LocalExecutor, Simulation, ThreadPool};

/// # Examples
///
/// ```
/// use futures_task::{FutureObj, Spawn};
/// use reveille::oneshot;
/// use reveille_executor::ThreadPool;
///
/// let pool = ThreadPool::new();
/// let (tx, rx) = oneshot::channel();
/// let future = Box::new(async move { tx.send(7).unwrap() });
/// pool.handle().spawn_obj(FutureObj::new(future))?;
/// assert_eq!(pool.block_on(rx), Ok(7));
///
/// let handle = pool.handle().clone();
/// drop(pool);
/// let late = FutureObj::new(Box::new(async {}));
/// assert!(handle.spawn_obj(late).unwrap_err().is_shutdown());
/// # Ok::<(), futures_task::SpawnError>(())
/// ```
impl Spawn for Handle {
    #[track_caller]
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.status()?;
        drop(self.spawn(future));
        Ok(())
    }

    fn status(&self) -> Result<(), SpawnError> {
        match self.is_closed() {
            true => Err(SpawnError::shutdown()),
            false => Ok(()),
        }
    }
}

impl Spawn for ThreadPool {
    #[track_caller]
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.handle().spawn_obj(future)
    }
}

/// An executor of one thread implements both traits.
macro_rules! of_one_thread {
    ($($executor:ty),*) => {$(
        impl Spawn for $executor {
            #[track_caller]
            fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
                drop(self.spawn_local(future));
                Ok(())
            }
        }

        impl LocalSpawn for $executor {
            #[track_caller]
            fn spawn_local_obj(
                &self,
                future: LocalFutureObj<'static, ()>,
            ) -> Result<(), SpawnError> {
                drop(self.spawn_local(future));
                Ok(())
            }
        }
    )*};
}

of_one_thread!(LocalExecutor, Simulation);
