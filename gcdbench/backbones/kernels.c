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
#include <stdlib.h>

#define MAX_TAPS 225

typedef struct {
    long batch;
    long height, width;         /* input map */
    long out_height, out_width; /* output map */
    long kernel, stride;
    long top, left; /* zeros before the first row and column */
} geometry;

static inline float clip6(float v) { return v < 0.0f ? 0.0f : (v > 6.0f ? 6.0f : v); }

/* Sums are taken in float over one batch row and in double over rows: fast, and exact enough for any map. */
static double row_sums(const float *x, long rows, long batch)
{
    double total = 0.0;
    for (long r = 0; r < rows; r++, x += batch) {
        float sum = 0.0f;
        for (long b = 0; b < batch; b++) sum += x[b];
        total += sum;
    }
    return total;
}

static void moments(const float *x, long rows, long batch, double *mean, double *variance)
{
    double m = row_sums(x, rows, batch) / (double)(rows * batch), total = 0.0;
    float centre = (float)m;
    for (long r = 0; r < rows; r++, x += batch) {
        float sum = 0.0f;
        for (long b = 0; b < batch; b++) {
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
static void channel_statistics(const float *x, long rows, long batch, int training, float *mean, float *variance)
{
    if (!training) return;
    double m, v;
    moments(x, rows, batch, &m, &v);
    *mean = (float)m;
    *variance = (float)(v > 0.0 ? v : 0.0);
}

static void scale_shift(const float *x, float *y, long count, float scale, float shift, int relu6)
{
    if (relu6)
        for (long i = 0; i < count; i++) y[i] = clip6(x[i] * scale + shift);
    else
        for (long i = 0; i < count; i++) y[i] = x[i] * scale + shift;
}

/* g := gradient before the clipping, where y = scale * x + shift was clipped; also sums of g and of g * (x - mean). */
static void clipped_sums(const float *x, float *g, long rows, long batch, float scale, float shift, float mean,
                         int relu6, double *sum_g, double *sum_gx)
{
    double total = 0.0, total_x = 0.0;
    for (long r = 0; r < rows; r++, x += batch, g += batch) {
        float sum = 0.0f, sum_x = 0.0f;
        if (relu6) {
            for (long b = 0; b < batch; b++) {
                float y = x[b] * scale + shift;
                float v = (y > 0.0f && y < 6.0f) ? g[b] : 0.0f;
                g[b] = v;
                sum += v;
                sum_x += v * (x[b] - mean);
            }
        } else {
            for (long b = 0; b < batch; b++) {
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
static void norm_gradient(const float *x, const float *g, float *out, long count, float mean, double inverse,
                          float gamma, double sum_g, double sum_gx)
{
    double n = (double)count;
    float a = (float)(gamma * inverse);
    float b = (float)(-gamma * inverse * inverse * inverse * sum_gx / n);
    float c = (float)(-gamma * inverse * sum_g / n);
    for (long i = 0; i < count; i++) out[i] = a * g[i] + (b * (x[i] - mean) + c);
}

static inline long lower(long o, long stride, long before) { return o * stride - before; }

static void filter_forward(const float *x, const float *w, float *y, const geometry *s)
{
    for (long oi = 0; oi < s->out_height; oi++)
        for (long oj = 0; oj < s->out_width; oj++) {
            float *restrict out = y + (oi * s->out_width + oj) * s->batch;
            for (long b = 0; b < s->batch; b++) out[b] = 0.0f;
            for (long u = 0; u < s->kernel; u++) {
                long i = lower(oi, s->stride, s->top) + u;
                if (i < 0 || i >= s->height) continue;
                for (long v = 0; v < s->kernel; v++) {
                    long j = lower(oj, s->stride, s->left) + v;
                    if (j < 0 || j >= s->width) continue;
                    const float *restrict in = x + (i * s->width + j) * s->batch;
                    float tap = w[u * s->kernel + v];
                    for (long b = 0; b < s->batch; b++) out[b] += tap * in[b];
                }
            }
        }
}

static void filter_backward(const float *x, const float *w, const float *gy, float *gx, float *gw, const geometry *s)
{
    long inputs = s->height * s->width * s->batch, taps = s->kernel * s->kernel;
    double sums[MAX_TAPS];
    for (long t = 0; t < taps; t++) sums[t] = 0.0;
    for (long k = 0; k < inputs; k++) gx[k] = 0.0f;
    for (long oi = 0; oi < s->out_height; oi++)
        for (long oj = 0; oj < s->out_width; oj++) {
            const float *restrict g = gy + (oi * s->out_width + oj) * s->batch;
            for (long u = 0; u < s->kernel; u++) {
                long i = lower(oi, s->stride, s->top) + u;
                if (i < 0 || i >= s->height) continue;
                for (long v = 0; v < s->kernel; v++) {
                    long j = lower(oj, s->stride, s->left) + v;
                    if (j < 0 || j >= s->width) continue;
                    long at = (i * s->width + j) * s->batch;
                    const float *restrict in = x + at;
                    float *restrict back = gx + at;
                    float tap = w[u * s->kernel + v], sum = 0.0f;
                    for (long b = 0; b < s->batch; b++) {
                        sum += g[b] * in[b];
                        back[b] += tap * g[b];
                    }
                    sums[u * s->kernel + v] += sum;
                }
            }
        }
    for (long t = 0; t < taps; t++) gw[t] = (float)sums[t];
}

/* out = relu6?(norm(x)); mean and variance are results when training, arguments otherwise. */
int norm_forward(long first, long last, const float *x, float *out, long cells, long batch, const float *gamma,
                 const float *beta, float *mean, float *variance, float eps, int training, int relu6)
{
    long count = cells * batch;
    for (long c = first; c < last; c++) {
        const float *in = x + c * count;
        channel_statistics(in, cells, batch, training, mean + c, variance + c);
        double inverse = 1.0 / sqrt((double)variance[c] + eps);
        float scale = (float)(gamma[c] * inverse), shift = (float)(beta[c] - mean[c] * (double)gamma[c] * inverse);
        scale_shift(in, out + c * count, count, scale, shift, relu6);
    }
    return 0;
}

int norm_backward(long first, long last, const float *x, const float *grad, float *grad_x, long cells, long batch,
                  const float *gamma, const float *beta, const float *mean, const float *variance, float eps,
                  int relu6, float *grad_gamma, float *grad_beta)
{
    long count = cells * batch;
    float *g = malloc(sizeof(float) * (size_t)count);
    if (g == NULL) return 1;
    for (long c = first; c < last; c++) {
        const float *in = x + c * count, *up = grad + c * count;
        double inverse = 1.0 / sqrt((double)variance[c] + eps), sum_g, sum_gx;
        float scale = (float)(gamma[c] * inverse), shift = (float)(beta[c] - mean[c] * (double)gamma[c] * inverse);
        for (long i = 0; i < count; i++) g[i] = up[i];
        clipped_sums(in, g, cells, batch, scale, shift, mean[c], relu6, &sum_g, &sum_gx);
        norm_gradient(in, g, grad_x + c * count, count, mean[c], inverse, gamma[c], sum_g, sum_gx);
        grad_beta[c] = (float)sum_g;
        grad_gamma[c] = (float)(sum_gx * inverse);
    }
    free(g);
    return 0;
}

/* out = relu6(norm1(filter(relu6(norm0(x))))) */
int separable_forward(long first, long last, const geometry *s, const float *x, float *out, const float *gamma0,
                      const float *beta0, float *mean0, float *variance0, const float *weight, const float *gamma1,
                      const float *beta1, float *mean1, float *variance1, float eps0, float eps1, int training)
{
    long inputs = s->height * s->width, outputs = s->out_height * s->out_width, taps = s->kernel * s->kernel;
    float *z = malloc(sizeof(float) * (size_t)(inputs * s->batch));
    if (z == NULL) return 1;
    for (long c = first; c < last; c++) {
        const float *in = x + c * inputs * s->batch;
        float *y = out + c * outputs * s->batch;
        norm_forward(0, 1, in, z, inputs, s->batch, gamma0 + c, beta0 + c, mean0 + c, variance0 + c, eps0, training, 1);
        filter_forward(z, weight + c * taps, y, s);
        norm_forward(0, 1, y, y, outputs, s->batch, gamma1 + c, beta1 + c, mean1 + c, variance1 + c, eps1, training, 1);
    }
    free(z);
    return 0;
}

int separable_backward(long first, long last, const geometry *s, const float *x, const float *grad, float *grad_x,
                       const float *gamma0, const float *beta0, const float *mean0, const float *variance0,
                       const float *weight, const float *gamma1, const float *beta1, const float *mean1,
                       const float *variance1, float eps0, float eps1, float *grad_gamma0, float *grad_beta0,
                       float *grad_weight, float *grad_gamma1, float *grad_beta1)
{
    long inputs = s->height * s->width, outputs = s->out_height * s->out_width, taps = s->kernel * s->kernel;
    size_t in_count = (size_t)(inputs * s->batch), out_count = (size_t)(outputs * s->batch);
    float *z = taps <= MAX_TAPS ? malloc(sizeof(float) * (2 * in_count + 2 * out_count)) : NULL;
    if (z == NULL) return 1;
    float *gz = z + in_count, *y = gz + in_count, *gy = y + out_count;
    for (long c = first; c < last; c++) {
        const float *in = x + c * (long)in_count;
        double inverse = 1.0 / sqrt((double)variance0[c] + eps0), sum_g, sum_gx;
        float scale = (float)(gamma0[c] * inverse), shift = (float)(beta0[c] - mean0[c] * (double)gamma0[c] * inverse);
        scale_shift(in, z, (long)in_count, scale, shift, 1);
        filter_forward(z, weight + c * taps, y, s);
        norm_backward(0, 1, y, grad + c * (long)out_count, gy, outputs, s->batch, gamma1 + c, beta1 + c, mean1 + c,
                      variance1 + c, eps1, 1, grad_gamma1 + c, grad_beta1 + c);
        filter_backward(z, weight + c * taps, gy, gz, grad_weight + c * taps, s);
        clipped_sums(in, gz, inputs, s->batch, scale, shift, mean0[c], 1, &sum_g, &sum_gx);
        norm_gradient(in, gz, grad_x + c * (long)in_count, (long)in_count, mean0[c], inverse, gamma0[c], sum_g, sum_gx);
        grad_beta0[c] = (float)sum_g;
        grad_gamma0[c] = (float)(sum_gx * inverse);
    }
    free(z);
    return 0;
}

/* Run everything once on a small map, to find out in a child process whether this processor can. 0 means it can. */
int try_kernels(void)
{
    enum { B = 37, H = 3, K = 5 };
    static float x[H * H * B], y[H * H * B], g[H * H * B], w[K * K], gw[K * K];
    float one = 1.0f, nil = 0.0f, mean[2], variance[2], grads[4];
    geometry s = {B, H, H, H, H, K, 1, 2, 2};
    for (long i = 0; i < H * H * B; i++) x[i] = (float)(i % 7) - 3.0f;
    for (long i = 0; i < K * K; i++) w[i] = 0.1f;
    if (separable_forward(0, 1, &s, x, y, &one, &nil, mean, variance, w, &one, &nil, mean + 1, variance + 1, 1e-3f, 1e-3f, 1))
        return 1;
    if (separable_backward(0, 1, &s, x, y, g, &one, &nil, mean, variance, w, &one, &nil, mean + 1, variance + 1, 1e-3f,
                           1e-3f, grads, grads + 1, gw, grads + 2, grads + 3))
        return 1;
    for (long i = 0; i < H * H * B; i++)
        if (!isfinite(y[i]) || !isfinite(g[i])) return 1;
    return 0;
}
