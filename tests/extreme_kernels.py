"""Extremes in the shapes that become different operations, see test_extremes_of_loops.py."""

# ruff: noqa: F821


def whole(x):
    y = output_tensor((1,), x.dtype)
    y[0] = x[0, 0]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[0] = max(y[0], x[i, j])
    return y


def rows(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i, 0]
        for j in range(x.shape[1]):
            y[i] = min(y[i], x[i, j])
    return y


def columns(x):
    y = output_tensor((x.shape[1],), x.dtype)
    for j in range(x.shape[1]):
        y[j] = x[0, j]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] = max(y[j], x[i, j])
    return y


def running(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i, 0] = x[i, 0]
        for j in range(1, x.shape[1]):
            y[i, j] = max(y[i, j - 1], x[i, j])
    return y


def side_by_side(x):
    y = output_tensor((x.shape[0] // 2, x.shape[1] // 2), x.dtype)
    for i in range(x.shape[0] // 2):
        for j in range(x.shape[1] // 2):
            y[i, j] = x[2 * i, 2 * j]
            for k in range(2):
                for m in range(2):
                    y[i, j] = max(y[i, j], x[2 * i + k, 2 * j + m])
    return y


def overlapping(x):
    y = output_tensor((x.shape[0], x.shape[1] - 2), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1] - 2):
            y[i, j] = x[i, j]
            for k in range(1, 3):
                y[i, j] = min(y[i, j], x[i, j + k])
    return y


def best_and_where(x):
    y = output_tensor((x.shape[0],), x.dtype)
    at = output_tensor((x.shape[0],), "int32")
    for i in range(x.shape[0]):
        y[i] = x[i, 0]
        for j in range(x.shape[1]):
            if x[i, j] > y[i]:
                y[i] = x[i, j]
                at[i] = j
    return y, at


def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        m = x[i, 0]
        for j in range(x.shape[1]):
            m = max(m, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            s = s + exp(x[i, j] - m)
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - m) / s
    return y


def at_data(x):
    y = output_tensor((3,), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[int32(x[i, 0])] = max(y[int32(x[i, 0])], x[i, j])
    return y


def kept_at_data(x):
    y = output_tensor((3,), x.dtype)
    for i in range(x.shape[0]):
        y[int32(x[i, 0])] = x[i, 1] if x[i, 1] >= y[int32(x[i, 0])] else y[int32(x[i, 0])]
    return y


def diagonals(x):
    y = output_tensor((x.shape[0] + x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i + j] = max(y[i + j], x[i, j])
    return y
