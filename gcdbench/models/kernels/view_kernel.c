/* Augmented views of stored images: crop, flip, colour jitter and normalisation in one go, one image at a time.
 *
 * The same arithmetic as gcdbench/views/augmentation.py, which is the reference. An image is kept as three planes of floats,
 * small enough for the second cache. Images are independent: a call works on [first, last).
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { BRIGHTNESS, CONTRAST, SATURATION, HUE };

static const float RED = 0.2989f, GREEN = 0.587f, BLUE = 0.114f;

static inline float clip1(float v) { return v < 0.0f ? 0.0f : (v > 1.0f ? 1.0f : v); }
static inline float larger(float a, float b) { return a > b ? a : b; }
static inline float smaller(float a, float b) { return a < b ? a : b; }

static float mean_grey(const float *r, const float *g, const float *b, int64_t rows, int64_t columns)
{
    double total = 0.0;
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0.0f;
        for (int64_t k = i * columns; k < (i + 1) * columns; k++) sum += RED * r[k] + GREEN * g[k] + BLUE * b[k];
        total += sum;
    }
    return (float)(total / (double)(rows * columns));
}

static void mix(float *restrict r, float *restrict g, float *restrict b, int64_t count, float factor, float add)
{
    for (int64_t k = 0; k < count; k++) {
        r[k] = clip1(r[k] * factor + add);
        g[k] = clip1(g[k] * factor + add);
        b[k] = clip1(b[k] * factor + add);
    }
}

static void saturate(float *restrict r, float *restrict g, float *restrict b, int64_t count, float factor)
{
    for (int64_t k = 0; k < count; k++) {
        float add = (1.0f - factor) * (RED * r[k] + GREEN * g[k] + BLUE * b[k]);
        r[k] = clip1(r[k] * factor + add);
        g[k] = clip1(g[k] * factor + add);
        b[k] = clip1(b[k] * factor + add);
    }
}

/* value - chroma * trapezoid(distance of the hue from the channel's place on the circle, in sixths) */
static inline float channel_at(float value, float chroma, float sixth, float place)
{
    float distance = sixth + place; /* both below 6, so one wrap is enough */
    distance = distance >= 6.0f ? distance - 6.0f : distance;
    float slope = smaller(distance, 4.0f - distance);
    return value - chroma * clip1(slope);
}

static void turn_hue(float *restrict r, float *restrict g, float *restrict b, int64_t count, float shift)
{
    for (int64_t k = 0; k < count; k++) {
        float red = r[k], green = g[k], blue = b[k];
        float value = larger(larger(red, green), blue), chroma = value - smaller(smaller(red, green), blue);
        float inverse = 1.0f / (chroma > 0.0f ? chroma : 1.0f);
        float from_red = (green - blue) * inverse, from_green = 2.0f + (blue - red) * inverse;
        float from_blue = 4.0f + (red - green) * inverse;
        float sixth = value == red ? from_red : (value == green ? from_green : from_blue);
        sixth += 6.0f * shift;
        sixth = sixth < 0.0f ? sixth + 6.0f : sixth;
        sixth = sixth >= 6.0f ? sixth - 6.0f : sixth;
        r[k] = channel_at(value, chroma, sixth, 5.0f);
        g[k] = channel_at(value, chroma, sixth, 3.0f);
        b[k] = channel_at(value, chroma, sixth, 1.0f);
    }
}

/* pixels (B, side, side, 3) -> out (B, size, size, 3). factors, order: (B, 4); order < 0 skips a turn. */
int make_views(int64_t first, int64_t last, const unsigned char *pixels, float *out, int64_t side, int64_t size,
               const int64_t *top, const int64_t *left, const unsigned char *flip, const float *factors,
               const int64_t *order, const float *mean, const float *std)
{
    int64_t count = size * size;
    float *r = malloc(sizeof(float) * (size_t)(3 * count));
    if (r == NULL) return 1;
    float *g = r + count, *b = g + count;
    for (int64_t n = first; n < last; n++) {
        for (int64_t i = 0; i < size; i++) {
            const unsigned char *row = pixels + ((n * side + top[n] + i) * side + left[n]) * 3;
            int64_t at = i * size;
            for (int64_t j = 0; j < size; j++) {
                const unsigned char *p = row + 3 * (flip[n] ? size - 1 - j : j);
                r[at + j] = (float)p[0] / 255.0f;
                g[at + j] = (float)p[1] / 255.0f;
                b[at + j] = (float)p[2] / 255.0f;
            }
        }
        for (int64_t turn = 0; turn < 4; turn++) {
            int64_t operation = order[4 * n + turn];
            if (operation < 0) continue;
            float factor = factors[4 * n + operation];
            if (operation == BRIGHTNESS) mix(r, g, b, count, factor, 0.0f);
            if (operation == CONTRAST) mix(r, g, b, count, factor, (1.0f - factor) * mean_grey(r, g, b, size, size));
            if (operation == SATURATION) saturate(r, g, b, count, factor);
            if (operation == HUE) turn_hue(r, g, b, count, factor);
        }
        float *to = out + n * 3 * count;
        for (int64_t k = 0; k < count; k++) {
            to[3 * k] = (r[k] - mean[0]) / std[0];
            to[3 * k + 1] = (g[k] - mean[1]) / std[1];
            to[3 * k + 2] = (b[k] - mean[2]) / std[2];
        }
    }
    free(r);
    return 0;
}

/* Make one small view with every operation, to find out in a child process whether the processor can. 0 means it worked. */
int try_views(void)
{
    enum { SIDE = 23, SIZE = 19 };
    static unsigned char pixels[SIDE * SIDE * 3], flip[1] = {1};
    static float out[SIZE * SIZE * 3];
    const int64_t top = 2, left = 3, order[4] = {BRIGHTNESS, CONTRAST, SATURATION, HUE};
    const float factors[4] = {1.1f, 0.9f, 1.2f, 0.05f}, mean[3] = {0.5f, 0.5f, 0.5f}, std[3] = {0.2f, 0.2f, 0.2f};
    for (int64_t i = 0; i < SIDE * SIDE * 3; i++) pixels[i] = (unsigned char)(i % 251);
    if (make_views(0, 1, pixels, out, SIDE, SIZE, &top, &left, flip, factors, order, mean, std)) return 1;
    for (int64_t i = 0; i < SIZE * SIZE * 3; i++)
        if (!(out[i] >= -3.0f && out[i] <= 3.0f)) return 1;
    return 0;
}
