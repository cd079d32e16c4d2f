//! Runs the table of contenders under criterion.

use std::time::Instant;

use criterion::Criterion;

/// Benches the groups of one primitive.
pub(crate) fn run(primitive: &str) {
    let mut criterion = Criterion::default().configure_from_args();
    let all = reveille_benches::contenders();
    for group in all.chunk_by(|a, b| a.group == b.group) {
        let name = group[0].group;
        if name.split('/').next() != Some(primitive) {
            continue;
        }
        let mut benches = criterion.benchmark_group(name);
        for contender in group {
            benches.bench_function(contender.name, |bencher| {
                bencher.iter_custom(|iterations| {
                    let start = Instant::now();
                    (contender.run)(iterations);
                    start.elapsed()
                });
            });
        }
        benches.finish();
    }
    criterion.final_summary();
}
