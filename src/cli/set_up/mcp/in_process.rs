//! Tool calls that change no lane: they run in the server itself, and open the repository for each call.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use proq_base::diagnostics::{Listener, Note};
use proq_lib::lane::{Error, Project, recovery};
use rmcp::model::CallToolResult;

use super::server::Server;
use super::tool_call::{describe_error, error_result, text_result_with_notes};
use crate::cli::invocation::failure::{Failure, FailureOutput};

/// One call: the folder that it is about, and the notes for the user that it leaves.
pub(crate) struct InProcessCall {
    /// Folder of the repository.
    pub(crate) dir: PathBuf,
    notes: Rc<RefCell<Vec<String>>>,
}

impl InProcessCall {
    /// Opens the repository, and warns if what crashed processes left behind cannot be recovered.
    pub(crate) fn project(&self) -> Result<Project, Failure> {
        let project = self.unrecovered_project()?;
        recovery::recover_before_reading(&project);
        Ok(project)
    }

    /// Opens the repository, without recovery.
    pub(crate) fn unrecovered_project(&self) -> Result<Project, Error> {
        Project::open(&self.dir, self.listener())
    }

    /// Returns the listener that keeps the notes which a command prints.
    pub(crate) fn listener(&self) -> Listener {
        let notes = Rc::clone(&self.notes);
        Listener::new(move |note| match note {
            Note::Warning(text) => notes.borrow_mut().push(format!("warning: {text}")),
            Note::Waiting(text) | Note::StepDone(text) => notes.borrow_mut().push(text.clone()),
            Note::Detail(_) | Note::Progress(_) => {}
        })
    }
}

impl Server {
    /// Runs `work` in a blocking task, and returns its result with the notes that it left, one per line.
    ///
    /// # Errors
    /// Returns the text of the error; also if `work` panics, which ends the call and not the server.
    pub(crate) async fn run_in_process<T: Send + 'static>(
        &self,
        work: impl FnOnce(&InProcessCall) -> Result<T, Failure> + Send + 'static,
    ) -> Result<(T, String), String> {
        let dir = self.dir.clone();
        let task = tokio::task::spawn_blocking(move || {
            let call = InProcessCall { dir, notes: Rc::default() };
            match work(&call) {
                Ok(result) => Ok((result, call.notes.take().join("\n"))),
                Err(failure) => Err(describe_error(&FailureOutput::new(&failure))),
            }
        });
        task.await.unwrap_or_else(|e| Err(format!("error: git-proq failed: {e}")))
    }

    /// Runs `read` as [`Server::run_in_process`] does, and returns its text as the tool's result.
    pub(crate) async fn read(
        &self,
        read: impl FnOnce(&InProcessCall) -> Result<String, Failure> + Send + 'static,
    ) -> CallToolResult {
        match self.run_in_process(read).await {
            Ok((text, notes)) => text_result_with_notes(&text, &notes),
            Err(reason) => error_result(&reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_ends_the_call_and_not_the_server() {
        let server = Server::with_lane_tools(PathBuf::new(), PathBuf::from("/"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let broken = server.run_in_process(|_| -> Result<(), Failure> { panic!("broken") }).await;
            assert!(broken.unwrap_err().contains("broken"));
            let warn = |call: &InProcessCall| {
                call.listener().warn("slow");
                Ok(1)
            };
            assert_eq!(server.run_in_process(warn).await.unwrap(), (1, "warning: slow".to_owned()));
        });
    }
}
