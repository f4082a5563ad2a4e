// What the patches share that look up a frame's pixels in maps [N, ..., H, W] of the model's picture:
// bilinear, pixel centres at half, by the geometry of the way in. The frame's border is repeated,
// not mixed with the padding.

struct Axis
{
    float step, origin; // a frame pixel's centre lies at (pixel + 0.5) * step + origin
    int low, high;      // cells that show the frame, not the padding beside it
};

struct Sample // two neighbours on an axis, and the weight of the second
{
    int first, second;
    float weight;
};

__device__ inline Axis make_axis(float scale, float before, float size, int model, int room)
{
    const float ratio = float(room) / float(model);
    const float begin = before * ratio, end = (size / scale + before) * ratio;
    const int low = min(max(int(ceilf(begin - 0.5f)), 0), room - 1);
    const int high = min(max(int(ceilf(end - 0.5f)) - 1, low), room - 1);
    return {ratio / scale, begin - 0.5f, low, high};
}

template <typename Fields> __device__ inline Axis axis_x(const Fields& args, int image)
{
    const float* geometry = args.geometry + 6ull * image;
    return make_axis(geometry[0], geometry[2], geometry[4], args.model_W, args.W);
}

template <typename Fields> __device__ inline Axis axis_y(const Fields& args, int image)
{
    const float* geometry = args.geometry + 6ull * image;
    return make_axis(geometry[1], geometry[3], geometry[5], args.model_H, args.H);
}

__device__ inline Sample sample(const Axis& axis, int pixel)
{
    const float at = (float(pixel) + 0.5f) * axis.step + axis.origin;
    const float inside = fminf(fmaxf(at, float(axis.low)), float(axis.high));
    const int first = int(inside);
    return {first, min(first + 1, axis.high), inside - float(first)};
}

__device__ inline float blend(float first, float second, float weight)
{
    return first + (second - first) * weight;
}
