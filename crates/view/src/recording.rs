//! Opens the file of a recording.

use std::path::Path;

use probe::{given, watch::recording::Recording};

use crate::error::{Result, ViewError};

/// The largest file that is read; it is kept in memory, compressed.
const LARGEST: u64 = 1 << 30;

/// Reads a recording, and finds its intervals.
///
/// # Errors
/// It cannot be read, is no recording, or has no readable interval.
pub fn open(path: &Path) -> Result<Recording> {
    let bytes = given::read(path, LARGEST).map_err(|e| ViewError::io(path, e))?;
    Recording::read(path.display().to_string(), bytes).map_err(ViewError::Recording)
}

#[cfg(test)]
mod tests {
    use model::watch::{WatchRecord, test_data};
    use ratatui::{buffer::Buffer, layout::Rect};

    use probe::watch::recorder::Recorder;

    use super::*;
    use crate::{Screen, ViewState, draw};

    #[test]
    fn any_interval_of_several_frames_can_be_had_in_any_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.zst");
        let mut recorder = Recorder::create(&path, false, u64::MAX).unwrap();
        recorder.host(&test_data::host(2, 1)).unwrap();
        let record =
            |turn| WatchRecord { interval: test_data::interval(2, turn), findings: vec![] };
        for turn in 0..40 {
            recorder.write(&record(turn)).unwrap();
        }
        // An unfinished recording: its last frame is incomplete, as after SIGKILL.
        let mut recording = open(&path).unwrap();
        assert_eq!(recording.len(), 40);
        assert!(recording.damage().unwrap().contains("cut off"));
        for number in [39, 0, 16, 15, 31, 32, 7] {
            assert_eq!(recording.get(number).unwrap(), record(number as u64), "{number}");
        }
        assert!(recording.get(40).is_err());
        recorder.finish().unwrap();
        assert!(open(&path).unwrap().damage().is_none());
    }

    /// A recording of an earlier netwright must stay readable: a new field of the model needs a
    /// default. `scripts/record-softirq` makes this file.
    #[test]
    fn the_committed_recording_is_read_and_drawn() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../netwright/tests/recordings/softirq.zst");
        let mut recording = open(&path).unwrap();
        assert_eq!((recording.len(), recording.damage()), (10, None));
        let host = recording.host.clone();
        // It lacks the fields added since the first recordings.
        let last = recording.get(9).unwrap().interval;
        let interrupted_tasks = last.interrupted_tasks.known().unwrap();
        assert!(
            interrupted_tasks
                .iter()
                .any(|p| p.process == model::Reading::Known("netwright".into())),
            "{interrupted_tasks:?}"
        );
        assert!(last.waits.known().is_some_and(|w| !w.is_empty()));
        assert!(last.messages.known().is_some_and(|m| !m.is_empty()));
        assert!(last.observer.attach_ns.is_known());
        let state = ViewState::new(Default::default(), None);
        for number in 0..10 {
            let record = recording.get(number).unwrap();
            for (width, height) in [(80, 24), (200, 60)] {
                let area = Rect::new(0, 0, width, height);
                let mut buffer = Buffer::empty(area);
                let screen =
                    Screen { host: &host, record: Some(&record), state: &state, colour: true };
                draw(&screen, area, &mut buffer);
                let text: String = buffer.content().iter().map(|c| c.symbol()).collect();
                assert!(text.contains("SSSSSSSS"), "system calls pay on loopback: {text}");
            }
        }
    }
}
