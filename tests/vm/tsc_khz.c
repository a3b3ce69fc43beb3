// Prints how many thousand times a second this processor's time stamp counter counts.
//
// The machine reads the same counter, and would otherwise measure it when it starts, against an emulated device. On a
// host at work it then takes it for several times as slow as it is: seconds in the machine pass several times as
// fast, and its tests run into their deadlines.
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

struct moment {
    uint64_t ticks;
    uint64_t ns;
};

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Reads counter and clock at one moment: the closest of many tries, because others run in between.
static struct moment both(void) {
    struct moment best = {0, 0};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 1000; i++) {
        uint64_t before = __rdtsc();
        uint64_t ns = clock_ns();
        uint64_t took = __rdtsc() - before;
        if (took < least) {
            least = took;
            best.ticks = before + took / 2;
            best.ns = ns;
        }
    }
    return best;
}

int main(void) {
    struct moment first = both();
    struct timespec wait = {0, 200000000};
    nanosleep(&wait, NULL);
    struct moment last = both();
    printf("%.0f\n", (double)(last.ticks - first.ticks) * 1e6 / (double)(last.ns - first.ns));
    return 0;
}
