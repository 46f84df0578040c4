//! Entries of newer files that have no id: a problem of their line, and no hindrance (spec 1.1, 1.3).

use session_model::error::ProblemKind;
use session_model::session::Session;

#[test]
fn an_entry_without_an_id_is_reported_and_its_neighbours_are_read() {
    let file = concat!(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n",
        "{\"type\":\"label\",\"id\":\"1\",\"parentId\":null}\n",
        "{\"type\":\"label\",\"parentId\":\"1\"}\n",
        "{\"type\":\"label\",\"id\":7,\"parentId\":\"1\"}\n",
        "{\"type\":\"label\",\"id\":\"2\",\"parentId\":\"1\"}\n",
    );
    let (session, problems) = Session::read(file.as_bytes()).expect("a session");
    let found: Vec<_> = problems.iter().map(|problem| (problem.kind, problem.line)).collect();
    assert_eq!(found, [(ProblemKind::MissingId, 3), (ProblemKind::MissingId, 4)]);
    let branch = session.branch(None).entries;
    assert_eq!(branch.iter().map(|&entry| session.id(entry)).collect::<Vec<_>>(), ["1", "2"]);
}
