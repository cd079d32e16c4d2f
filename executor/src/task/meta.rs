//! `TaskMeta`: what a hook is told of a task.

#![forbid(unsafe_code)]

use std::panic::Location;

use reveille::raw::Metadata;

use super::Id;

/// What is known of a task that is being spawned. See
/// [`on_task_spawn`](crate::pool::Builder::on_task_spawn).
#[derive(Debug)]
pub struct TaskMeta {
    metadata: Metadata,
}

impl TaskMeta {
    pub(crate) fn new(metadata: Metadata) -> Self {
        Self { metadata }
    }

    /// Returns the number of the task.
    #[must_use]
    pub fn id(&self) -> Id {
        Id::of(self.metadata.id)
    }

    /// Returns the name of the task, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.metadata.name.as_deref()
    }

    /// Returns the location where the task is being spawned.
    #[must_use]
    pub fn location(&self) -> &'static Location<'static> {
        self.metadata.location
    }
}
