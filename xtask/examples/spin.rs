//! A loop over integers on some threads, for what a machine gains by a second one: `spin THREADS ROUNDS`.

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let (n_threads, n_rounds) = (arguments.next().unwrap_or(1), arguments.next().unwrap_or(1 << 28));
    let sum: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads)
            .map(|seed| {
                scope.spawn(move || {
                    (0..n_rounds / n_threads).fold(seed | 1, |state, _| {
                        let state = state ^ (state << 13);
                        let state = state ^ (state >> 7);
                        state ^ (state << 17)
                    })
                })
            })
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).fold(0, |sum, it| sum ^ it)
    });
    println!("{sum}");
}
