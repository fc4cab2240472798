/* Element-wise parts of a separable convolution stage, one channel at a time.
 *
 * Activations are channel-major: channel c is a contiguous block of cells*batch floats, cell by cell. A block fits
 * into the first or second cache, so normalising, clipping and filtering it costs one read and one write of memory
 * instead of one for each operation. What is cheap is computed again in the backward pass rather than stored.
 *
 * Channels are independent: every function works on the channels [first, last), so that threads can share them
 * without changing a bit of the result.
 */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
    int64_t batch;
    int64_t height, width;         /* input map */
    int64_t out_height, out_width; /* output map */
    int64_t kernel, stride;
    int64_t top, left; /* zeros before the first row and column */
} geometry;

static inline float clip6(float v) { return v < 0.0f ? 0.0f : (v > 6.0f ? 6.0f : v); }

/* Sums are taken in float over one batch row and in double over rows: fast, and exact enough for any map. */
static double row_sums(const float *x, int64_t rows, int64_t batch)
{
    double total = 0.0;
    for (int64_t r = 0; r < rows; r++, x += batch) {
        float sum = 0.0f;
        for (int64_t b = 0; b < batch; b++) sum += x[b];
        total += sum;
    }
    return total;
}

static void moments(const float *x, int64_t rows, int64_t batch, double *mean, double *variance)
{
    double m = row_sums(x, rows, batch) / (double)(rows * batch), total = 0.0;
    float centre = (float)m;
    for (int64_t r = 0; r < rows; r++, x += batch) {
        float sum = 0.0f;
        for (int64_t b = 0; b < batch; b++) {
            float d = x[b] - centre;
            sum += d * d;
        }
        total += sum;
    }
    double shift = m - (double)centre;
    *mean = m;
    *variance = total / (double)(rows * batch) - shift * shift;
}

/* Statistics of one channel: measured here when training, given otherwise. */
static void channel_statistics(const float *x, int64_t rows, int64_t batch, int training, float *mean, float *variance)
{
    if (!training) return;
    double m, v;
    moments(x, rows, batch, &m, &v);
    *mean = (float)m;
    *variance = (float)(v > 0.0 ? v : 0.0);
}

static void scale_shift(const float *x, float *y, int64_t count, float scale, float shift, int relu6)
{
    if (relu6)
        for (int64_t i = 0; i < count; i++) y[i] = clip6(x[i] * scale + shift);
    else
        for (int64_t i = 0; i < count; i++) y[i] = x[i] * scale + shift;
}

/* g := gradient before the clipping, where y = scale * x + shift was clipped; also sums of g and of g * (x - mean). */
static void clipped_sums(const float *x, float *g, int64_t rows, int64_t batch, float scale, float shift, float mean,
                         int relu6, double *sum_g, double *sum_gx)
{
    double total = 0.0, total_x = 0.0;
    for (int64_t r = 0; r < rows; r++, x += batch, g += batch) {
        float sum = 0.0f, sum_x = 0.0f;
        if (relu6) {
            for (int64_t b = 0; b < batch; b++) {
                float y = x[b] * scale + shift;
                float v = (y > 0.0f && y < 6.0f) ? g[b] : 0.0f;
                g[b] = v;
                sum += v;
                sum_x += v * (x[b] - mean);
            }
        } else {
            for (int64_t b = 0; b < batch; b++) {
                sum += g[b];
                sum_x += g[b] * (x[b] - mean);
            }
        }
        total += sum;
        total_x += sum_x;
    }
    *sum_g = total;
    *sum_gx = total_x;
}

/* Gradient of BatchNorm's input from that of its output, in place. */
static void norm_gradient(const float *x, const float *g, float *out, int64_t count, float mean, double inverse,
                          float gamma, double sum_g, double sum_gx)
{
    double n = (double)count;
    float a = (float)(gamma * inverse);
    float b = (float)(-gamma * inverse * inverse * inverse * sum_gx / n);
    float c = (float)(-gamma * inverse * sum_g / n);
    for (int64_t i = 0; i < count; i++) out[i] = a * g[i] + (b * (x[i] - mean) + c);
}

/* A pair of an output cell and an input cell with the filter tap between them. */
typedef struct {
    int64_t tap, output, input;
} link;

/* All links of a "SAME" filter, grouped by output cell, by input cell or by tap: begin[k] is the first of group k. */
typedef struct {
    link *links;
    int64_t *begin;
} grouping;

enum { BY_OUTPUT, BY_INPUT, BY_TAP };

static int group_links(const geometry *s, int by, grouping *result)
{
    int64_t outputs = s->out_height * s->out_width, inputs = s->height * s->width, taps = s->kernel * s->kernel;
    int64_t groups = by == BY_OUTPUT ? outputs : by == BY_INPUT ? inputs : taps, count = 0;
    result->links = malloc(sizeof(link) * (size_t)(outputs * taps + 1));
    result->begin = malloc(sizeof(int64_t) * (size_t)(groups + 1));
    if (result->links == NULL || result->begin == NULL) return 1;
    for (int64_t group = 0; group < groups; group++) {
        result->begin[group] = count;
        for (int64_t o = 0; o < outputs; o++)
            for (int64_t t = 0; t < taps; t++) {
                int64_t i = o / s->out_width * s->stride - s->top + t / s->kernel;
                int64_t j = o % s->out_width * s->stride - s->left + t % s->kernel;
                if (i < 0 || i >= s->height || j < 0 || j >= s->width) continue;
                link candidate = {t, o, i * s->width + j};
                int64_t key = by == BY_OUTPUT ? candidate.output : by == BY_INPUT ? candidate.input : candidate.tap;
                if (key == group) result->links[count++] = candidate;
            }
    }
    result->begin[groups] = count;
    return 0;
}

static void free_links(grouping *g)
{
    free(g->links);
    free(g->begin);
}

/* As many floats as a vector register of the processor holds: wider ones than it has would live in memory. */
#if defined(__AVX512F__)
enum { LANES = 16, VECTORS = 4 };
#elif defined(__AVX__)
enum { LANES = 8, VECTORS = 8 };
#else
enum { LANES = 4, VECTORS = 8 };
#endif
typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
enum { BLOCK = VECTORS * LANES }; /* BLOCK floats of a batch row are kept in registers at a time */

/* to[cell] = sum of tap * from[other cell] over the links of each cell: the filter (BY_OUTPUT) or its transpose. */
static void apply_links(const float *from, const float *w, float *to, const grouping *g, int by, int64_t cells,
                        int64_t batch)
{
    for (int64_t cell = 0; cell < cells; cell++) {
        float *restrict out = to + cell * batch;
        const link *first = g->links + g->begin[cell], *last = g->links + g->begin[cell + 1];
        int64_t b = 0;
        for (; b + BLOCK <= batch; b += BLOCK) {
            vec sums[VECTORS] = {{0}};
            for (const link *l = first; l < last; l++) {
                const vec *in = (const vec *)(from + (by == BY_OUTPUT ? l->input : l->output) * batch + b);
                float tap = w[l->tap];
#pragma GCC unroll 8
                for (int k = 0; k < VECTORS; k++) sums[k] += tap * in[k];
            }
#pragma GCC unroll 8
            for (int k = 0; k < VECTORS; k++) ((vec *)(out + b))[k] = sums[k];
        }
        for (; b < batch; b++) {
            float sum = 0.0f;
            for (const link *l = first; l < last; l++)
                sum += w[l->tap] * from[(by == BY_OUTPUT ? l->input : l->output) * batch + b];
            out[b] = sum;
        }
    }
}

/* Gradient of each tap: the sum of output gradient * input over its links. */
static void tap_gradients(const float *x, const float *gy, float *gw, const grouping *g, int64_t taps, int64_t batch)
{
    for (int64_t t = 0; t < taps; t++) {
        vec sums[VECTORS] = {{0}};
        float rest = 0.0f;
        for (const link *l = g->links + g->begin[t]; l < g->links + g->begin[t + 1]; l++) {
            const float *in = x + l->input * batch, *up = gy + l->output * batch;
            int64_t b = 0;
            for (; b + BLOCK <= batch; b += BLOCK) {
                const vec *u = (const vec *)(in + b), *v = (const vec *)(up + b);
#pragma GCC unroll 8
                for (int k = 0; k < VECTORS; k++) sums[k] += u[k] * v[k];
            }
            for (; b < batch; b++) rest += in[b] * up[b];
        }
        double sum = rest;
        for (int k = 0; k < VECTORS; k++)
            for (int lane = 0; lane < LANES; lane++) sum += sums[k][lane];
        gw[t] = (float)sum;
    }
}

/* out = relu6?(norm(x)); mean and variance are results when training, arguments otherwise. */
int norm_forward(int64_t first, int64_t last, const float *x, float *out, int64_t cells, int64_t batch,
                 const float *gamma, const float *beta, float *mean, float *variance, float eps, int training,
                 int relu6)
{
    int64_t count = cells * batch;
    for (int64_t c = first; c < last; c++) {
        const float *in = x + c * count;
        channel_statistics(in, cells, batch, training, mean + c, variance + c);
        double inverse = 1.0 / sqrt((double)variance[c] + eps);
        float scale = (float)(gamma[c] * inverse), shift = (float)(beta[c] - mean[c] * (double)gamma[c] * inverse);
        scale_shift(in, out + c * count, count, scale, shift, relu6);
    }
    return 0;
}

int norm_backward(int64_t first, int64_t last, const float *x, const float *grad, float *grad_x, int64_t cells,
                  int64_t batch, const float *gamma, const float *beta, const float *mean, const float *variance,
                  float eps, int relu6, float *grad_gamma, float *grad_beta)
{
    int64_t count = cells * batch;
    float *g = malloc(sizeof(float) * (size_t)count);
    if (g == NULL) return 1;
    for (int64_t c = first; c < last; c++) {
        const float *in = x + c * count, *up = grad + c * count;
        double inverse = 1.0 / sqrt((double)variance[c] + eps), sum_g, sum_gx;
        float scale = (float)(gamma[c] * inverse), shift = (float)(beta[c] - mean[c] * (double)gamma[c] * inverse);
        for (int64_t i = 0; i < count; i++) g[i] = up[i];
        clipped_sums(in, g, cells, batch, scale, shift, mean[c], relu6, &sum_g, &sum_gx);
        norm_gradient(in, g, grad_x + c * count, count, mean[c], inverse, gamma[c], sum_g, sum_gx);
        grad_beta[c] = (float)sum_g;
        grad_gamma[c] = (float)(sum_gx * inverse);
    }
    free(g);
    return 0;
}

/* out = relu6(norm1(filter(relu6(norm0(x))))) */
int separable_forward(int64_t first, int64_t last, const geometry *s, const float *x, float *out, const float *gamma0,
                      const float *beta0, float *mean0, float *variance0, const float *weight, const float *gamma1,
                      const float *beta1, float *mean1, float *variance1, float eps0, float eps1, int training)
{
    int64_t inputs = s->height * s->width, outputs = s->out_height * s->out_width, taps = s->kernel * s->kernel;
    float *z = malloc(sizeof(float) * (size_t)(inputs * s->batch));
    grouping forward;
    int failed = group_links(s, BY_OUTPUT, &forward) || z == NULL;
    for (int64_t c = first; !failed && c < last; c++) {
        const float *in = x + c * inputs * s->batch;
        float *y = out + c * outputs * s->batch;
        norm_forward(0, 1, in, z, inputs, s->batch, gamma0 + c, beta0 + c, mean0 + c, variance0 + c, eps0, training, 1);
        apply_links(z, weight + c * taps, y, &forward, BY_OUTPUT, outputs, s->batch);
        norm_forward(0, 1, y, y, outputs, s->batch, gamma1 + c, beta1 + c, mean1 + c, variance1 + c, eps1, training, 1);
    }
    free(z);
    free_links(&forward);
    return failed;
}

int separable_backward(int64_t first, int64_t last, const geometry *s, const float *x, const float *grad, float *grad_x,
                       const float *gamma0, const float *beta0, const float *mean0, const float *variance0,
                       const float *weight, const float *gamma1, const float *beta1, const float *mean1,
                       const float *variance1, float eps0, float eps1, float *grad_gamma0, float *grad_beta0,
                       float *grad_weight, float *grad_gamma1, float *grad_beta1)
{
    int64_t inputs = s->height * s->width, outputs = s->out_height * s->out_width, taps = s->kernel * s->kernel;
    size_t in_count = (size_t)(inputs * s->batch), out_count = (size_t)(outputs * s->batch);
    float *z = malloc(sizeof(float) * (2 * in_count + 2 * out_count));
    float *gz = z + in_count, *y = gz + in_count, *gy = y + out_count;
    grouping forward, transposed, by_tap;
    int failed = group_links(s, BY_OUTPUT, &forward) | group_links(s, BY_INPUT, &transposed) |
                 group_links(s, BY_TAP, &by_tap) | (z == NULL);
    for (int64_t c = first; !failed && c < last; c++) {
        const float *in = x + c * (int64_t)in_count;
        double inverse = 1.0 / sqrt((double)variance0[c] + eps0), sum_g, sum_gx;
        float scale = (float)(gamma0[c] * inverse), shift = (float)(beta0[c] - mean0[c] * (double)gamma0[c] * inverse);
        scale_shift(in, z, (int64_t)in_count, scale, shift, 1);
        apply_links(z, weight + c * taps, y, &forward, BY_OUTPUT, outputs, s->batch);
        norm_backward(0, 1, y, grad + c * (int64_t)out_count, gy, outputs, s->batch, gamma1 + c, beta1 + c, mean1 + c,
                      variance1 + c, eps1, 1, grad_gamma1 + c, grad_beta1 + c);
        tap_gradients(z, gy, grad_weight + c * taps, &by_tap, taps, s->batch);
        apply_links(gy, weight + c * taps, gz, &transposed, BY_INPUT, inputs, s->batch);
        clipped_sums(in, gz, inputs, s->batch, scale, shift, mean0[c], 1, &sum_g, &sum_gx);
        norm_gradient(in, gz, grad_x + c * (int64_t)in_count, (int64_t)in_count, mean0[c], inverse, gamma0[c], sum_g,
                      sum_gx);
        grad_beta0[c] = (float)sum_g;
        grad_gamma0[c] = (float)(sum_gx * inverse);
    }
    free(z);
    free_links(&forward);
    free_links(&transposed);
    free_links(&by_tap);
    return failed;
}

/* Run everything in this file once on a small map, to find out in a child process whether this processor can. 0 means it can. */
int try_kernels(void)
{
    enum { B = BLOCK + 5, H = 3, K = 5 }; /* a whole block and some more */
    static float x[H * H * B], y[H * H * B], g[H * H * B], w[K * K], gw[K * K];
    float one = 1.0f, nil = 0.0f, mean[2], variance[2], grads[4];
    geometry s = {B, H, H, H, H, K, 1, 2, 2};
    for (int64_t i = 0; i < H * H * B; i++) x[i] = (float)(i % 7) - 3.0f;
    for (int64_t i = 0; i < K * K; i++) w[i] = 0.1f;
    if (separable_forward(0, 1, &s, x, y, &one, &nil, mean, variance, w, &one, &nil, mean + 1, variance + 1, 1e-3f,
                          1e-3f, 1))
        return 1;
    if (separable_backward(0, 1, &s, x, y, g, &one, &nil, mean, variance, w, &one, &nil, mean + 1, variance + 1, 1e-3f,
                           1e-3f, grads, grads + 1, gw, grads + 2, grads + 3))
        return 1;
    for (int64_t i = 0; i < H * H * B; i++)
        if (!isfinite(y[i]) || !isfinite(g[i])) return 1;
    return 0;
}
