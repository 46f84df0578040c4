//! Whether a compaction is due (spec 3.8).

use crate::settings::CompactionSettings;

/// The number of tokens above which a compaction is due in a window of this size.
pub fn threshold(settings: &CompactionSettings, window: u64) -> u64 {
    if let Some(tokens) = settings.threshold_tokens.filter(|tokens| *tokens > 0) {
        return tokens.clamp(1, window.saturating_sub(1).max(1));
    }
    if let Some(percent) = settings.threshold_percent.filter(|percent| *percent > 0.0) {
        return (window as f64 * percent.clamp(1.0, 99.0) / 100.0).floor() as u64;
    }
    window.saturating_sub(settings.reserve_tokens)
}

/// Whether so many tokens of context make a compaction due.
pub fn is_due(settings: &CompactionSettings, context_tokens: u64, window: u64) -> bool {
    settings.enabled && context_tokens > threshold(settings, window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(settings: CompactionSettings, expected: u64) {
        assert_eq!(threshold(&settings, 200_000), expected);
    }

    #[test]
    fn the_reserve_is_left_free() {
        check(CompactionSettings::default(), 183_616);
        let settings = CompactionSettings::default();
        assert!(!is_due(&settings, 183_616, 200_000));
        assert!(is_due(&settings, 183_617, 200_000));
        assert!(!is_due(&CompactionSettings { enabled: false, ..settings }, 183_617, 200_000));
    }

    #[test]
    fn tokens_win_over_the_percentage_and_both_are_clamped() {
        let with = |percent, tokens| CompactionSettings {
            threshold_percent: percent,
            threshold_tokens: tokens,
            ..CompactionSettings::default()
        };
        check(with(Some(50.0), None), 100_000);
        check(with(Some(120.0), None), 198_000);
        check(with(Some(0.5), None), 2_000);
        check(with(Some(-3.0), None), 183_616);
        check(with(Some(50.0), Some(1234)), 1234);
        check(with(None, Some(999_999)), 199_999);
        check(with(None, Some(0)), 183_616);
    }
}
