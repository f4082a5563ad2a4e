// Greedy suppression of turned rectangles by ProbIoU (Llerena et al., 2021), then model pixels to
// frame pixels. A rectangle counts as a normal distribution with its own mean and covariance;
// ProbIoU is 1 less the Hellinger distance of two of them.
//
// Bytes, for K candidates and M places an image: reads 48 K, writes 44 M; scratch as select_nms.
#include "../greedy.cuh"
#include "../rectangles.cuh"

constexpr float QUARTER = 1.57079633f; // of a turn

struct ProbIou
{
    struct Item
    {
        float x, y;
        Turn turn;
        float along, across; // the variances: a twelfth of the squared width and height
        int label;
    };

    // ProbIoU > t means that the Bhattacharyya distance is below -ln(1 - (1 - t)^2).
    struct Limit
    {
        float threshold, distance;
    };

    static __device__ Rectangle rectangle(const Args& args, unsigned long long at)
    {
        const unsigned long long image = at / args.A;
        const float* of = args.rectangles + 5 * (image * args.A + args.candidates_anchors[at]);
        return {of[0], of[1], of[2], of[3], of[4]};
    }

    static __device__ Item item(const Args& args, unsigned long long at)
    {
        const Rectangle one = rectangle(args, at);
        return {one.x, one.y, turn_of(one.angle), one.width * one.width / 12.0f,
                one.height * one.height / 12.0f, args.candidates_classes[at]};
    }

    static __device__ Limit limit(float threshold)
    {
        const float apart = 1.0f - threshold;
        return {threshold, -logf(1.0f - apart * apart) * 1.0001f + 1e-5f};
    }

    // Of the summed covariances; nothing cancels out, however thin the rectangles.
    static __device__ float determinant(const Item& a, const Item& b)
    {
        const float cosine = a.turn.cosine * b.turn.cosine + a.turn.sine * b.turn.sine;
        const float sine = a.turn.sine * b.turn.cosine - a.turn.cosine * b.turn.sine;
        const float parallel = a.along * b.across + a.across * b.along;
        const float crossed = a.along * b.along + a.across * b.across;
        return a.along * a.across + b.along * b.across + cosine * cosine * parallel +
               sine * sine * crossed;
    }

    // A way, squared and weighed with the other variance each along and across a rectangle.
    static __device__ float weighed(const Item& one, float x, float y)
    {
        const float along = one.turn.cosine * x + one.turn.sine * y;
        const float across = one.turn.cosine * y - one.turn.sine * x;
        return along * along * one.across + across * across * one.along;
    }

    // The part of the distance that comes from the means, times the determinant.
    static __device__ float between_means(const Item& a, const Item& b)
    {
        const float x = a.x - b.x, y = a.y - b.y;
        return 0.25f * (weighed(a, x, y) + weighed(b, x, y));
    }

    static __device__ bool could(const Item& better, const Item& one, const Limit& limit)
    {
        return between_means(better, one) < limit.distance * determinant(better, one);
    }

    static __device__ bool suppresses(const Item& a, const Item& b, const Limit& limit)
    {
        const float both = determinant(a, b);
        const float roots = sqrtf(a.along * a.across) * sqrtf(b.along * b.across);
        const float distance = between_means(a, b) / both + 0.5f * logf(both / (4.0f * roots));
        const float apart = sqrtf(-expm1f(distance < 0.0f ? 0.0f : -distance));
        return 1.0f - apart > limit.threshold;
    }

    // The width in frame pixels turns where the scales differ; the height stays upright to it.
    static __device__ void write(const Args& args, int image, int row, unsigned long long at)
    {
        const Rectangle one = rectangle(args, at);
        const float* geometry = args.geometry + 6ull * image;
        const Turn turn = turn_of(one.angle);
        const float x = turn.cosine * geometry[0], y = turn.sine * geometry[1];
        const float u = turn.sine * geometry[0], v = turn.cosine * geometry[1];
        const float width = one.width * sqrtf(x * x + y * y);
        const float height = one.height * sqrtf(u * u + v * v);
        const float angle = atan2f(y, x), turns = floorf(angle / QUARTER);
        const bool swapped = turns == 1.0f || turns == -1.0f;
        float* rotated = args.rotated + 5ull * (1ull * image * args.M + row);
        rotated[0] = (one.x - geometry[2]) * geometry[0];
        rotated[1] = (one.y - geometry[3]) * geometry[1];
        rotated[2] = swapped ? height : width;
        rotated[3] = swapped ? width : height;
        rotated[4] = angle - turns * QUARTER;
    }

    static __device__ void clear(const Args& args, int image, int row)
    {
        float* rotated = args.rotated + 5ull * (1ull * image * args.M + row);
        for (int i = 0; i < 5; ++i) rotated[i] = 0.0f;
    }
};

extern "C" __global__ void __launch_bounds__(1024, 1) select_nms_rotated(const Args args)
{
    select_greedily<ProbIou>(args);
}
