// Reads a digit that is drawn on standard input, as the CMake example does.
use std::ffi::{c_char, c_int, c_void, CStr};
use std::io::BufRead;

extern "C" {
    fn digits_run_sized(
        arena: *mut c_void,
        bytes: usize,
        inputs: *const *const c_void,
        outputs: *const *mut c_void,
    ) -> c_int;
    fn digits_arena_bytes() -> usize;
    fn digits_status_text(status: c_int) -> *const c_char;
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u8; 64]); // the arena is aligned to as much

struct Model {
    arena: Vec<Line>,
}

impl Model {
    fn new() -> Self {
        let bytes = unsafe { digits_arena_bytes() };
        Model { arena: vec![Line([0; 64]); bytes.div_ceil(64)] }
    }

    fn run(&mut self, image: &[f32; 64]) -> Result<[f32; 10], String> {
        let mut scores = [0f32; 10];
        let inputs = [image.as_ptr().cast()];
        let outputs = [scores.as_mut_ptr().cast()];
        let status = unsafe {
            digits_run_sized(self.arena.as_mut_ptr().cast(), 64 * self.arena.len(), inputs.as_ptr(), outputs.as_ptr())
        };
        if status == 0 {
            return Ok(scores);
        }
        Err(unsafe { CStr::from_ptr(digits_status_text(status)) }.to_string_lossy().into_owned())
    }
}

fn main() -> Result<(), String> {
    let mut image = [0f32; 64];
    for (row, line) in std::io::stdin().lock().lines().take(8).enumerate() {
        for (at, mark) in line.map_err(|error| error.to_string())?.chars().take(8).enumerate() {
            image[8 * row + at] = match mark {
                '#' => 1.0,
                '+' => 0.5,
                _ => 0.0,
            };
        }
    }
    let scores = Model::new().run(&image)?;
    let best = (0..10).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
    println!("{best}, score {}", scores[best]);
    Ok(())
}
