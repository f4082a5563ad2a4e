// Rectangles that are turned: centre x y, width, height, and the angle from the x axis to the
// width, clockwise, in radians.

struct Rectangle
{
    float x, y, width, height, angle;
};

struct Turn
{
    float cosine, sine;
};

// To the last bit or two for angles of a few turns; sinf would keep an array for the others. The
// angle is brought to within an eighth of a turn of a multiple of a quarter; Taylor does the rest.
__device__ inline Turn turn_of(float angle)
{
    const float quarters = rintf(angle * 0.636619772f);
    const float rest = fmaf(quarters, 4.37113883e-8f, fmaf(quarters, -1.57079637f, angle));
    const float x = rest * rest;
    const float sine =
        rest + rest * x * (-1.0f / 6 + x * (1.0f / 120 + x * (-1.0f / 5040 + x / 362880)));
    const float cosine =
        1.0f + x * (-0.5f + x * (1.0f / 24 + x * (-1.0f / 720 + x * (1.0f / 40320 - x / 3628800))));
    const float quarter = quarters - 4.0f * floorf(quarters * 0.25f);
    const bool odd = quarter == 1.0f || quarter == 3.0f;
    const float x_part = odd ? sine : cosine, y_part = odd ? cosine : sine;
    const bool left = quarter == 1.0f || quarter == 2.0f, up = quarter >= 2.0f;
    return {left ? -x_part : x_part, up ? -y_part : y_part};
}

// The upright box around a rectangle.
__device__ inline Box box_around(Rectangle one)
{
    const Turn turn = turn_of(one.angle);
    const float cosine = fabsf(turn.cosine), sine = fabsf(turn.sine);
    return box_around(one.x, one.y, one.width * cosine + one.height * sine,
                      one.width * sine + one.height * cosine);
}
