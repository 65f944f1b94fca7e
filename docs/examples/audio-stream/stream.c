/* Reads sound from standard input, 16-bit samples at 16 kHz, and prints its loudness
   every 10 ms. The model is called once per frame, on the same memory; no call takes any.

     python3 make_model.py
     svod-pack loudness.onnx -o libloudness.a --name loudness
     cc -O2 stream.c libloudness.a -o stream
     arecord -f S16_LE -r 16000 | ./stream */
#include "libloudness.h"

#include <stdalign.h>
#include <stdio.h>

enum { FRAME = LOUDNESS_INPUT_0_COUNT };

static alignas(LOUDNESS_ARENA_ALIGN) unsigned char arena[LOUDNESS_ARENA_BYTES];

int main(void) {
  static int16_t samples[FRAME];
  static float frame[FRAME];
  float level[2] = {0, 0}, decibels = 0; /* of the frame before, and of this one */
  for (unsigned count = 0; fread(samples, sizeof samples, 1, stdin) == 1; count++) {
    for (int i = 0; i < FRAME; i++) frame[i] = samples[i] / 32768.0f;
    const void* inputs[] = {frame, &level[count % 2]};
    void* outputs[] = {&decibels, &level[(count + 1) % 2]};
    int status = loudness_run(arena, inputs, outputs);
    if (status != LOUDNESS_OK) {
      fprintf(stderr, "%s\n", loudness_status_text(status));
      return 1;
    }
    printf("%6u ms %7.2f dB\n", 10 * count, (double)decibels);
    fflush(stdout);
  }
  return 0;
}
