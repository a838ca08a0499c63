"""What is refused in a kernel, and what is said: statements, problem, remedy.

The statements stand in a kernel between the declaration and the return of an output `c`; the quotes
« » are around what the caret of the message shows.
"""

from __future__ import annotations

Rows = tuple[tuple[str, str, str], ...]

TYPE_ERRORS: Rows = (
    (
        "d = «allocate((3,), 'float32', 'local')»",
        "function 'allocate' expects 2 inputs, but gets 3",
        "Pass func_type='akg', whose dialect takes them.",
    ),
    (
        "c[0] = «sqrt(a[0], a[1])»",
        "function 'sqrt' expects 1 input, but gets 2",
        "Pass as many as it expects.",
    ),
    (
        "c[0] = «power(a[0])»",
        "function 'power' expects 2 inputs, but gets 1",
        "Pass as many as it expects.",
    ),
    (
        "c[0] = «max(a)»",
        "function 'max' expects 2 inputs, but gets 1",
        "Of all elements it is found in a loop: m = max(m, x[i]).",
    ),
)
"""Found when the op is made, where MindSpore raises TypeError."""

VALUE_ERRORS: Rows = (
    (
        "c[0] = «np.exp»(a[0])",
        "'np.exp' cannot be called in a kernel",
        "Functions are called by plain names, without a module: exp.",
    ),
    (
        "t = «np.zeros»(a.shape)",
        "'np.zeros' cannot be called in a kernel",
        "Functions are called by plain names, without a module: output_tensor, allocate.",
    ),
    (
        "c[0] = «math.fancy»(a[0])",
        "'math.fancy' cannot be called in a kernel",
        "Functions are called by plain names, without a module: sqrt, exp, tanh.",
    ),
    (
        "t = allocate(«a.shape»(), 'float32')",
        "'a.shape' is a tuple, and cannot be called",
        "Write a.shape, or a.shape[0] for an extent.",
    ),
    (
        "c[0] = «a[:2].sum»()",
        "'a[:2].sum' is a method, and tensors have none in a kernel",
        "Add up in a loop: s = 0.0, then s += x[i] for each i in range(x.shape[0]).",
    ),
    (
        "c[0] = «a.mean»()",
        "'a.mean' is a method, and tensors have none in a kernel",
        "Add up in a loop, s += x[i], and divide by the number of elements, float32(n).",
    ),
    (
        "c[0] = «a[0].item»()",
        "'a[0].item' is a method, and tensors have none in a kernel",
        "Write a loop over its elements.",
    ),
    (
        "c[0] = «sqr»(a[0])",
        "'sqr' is no function of the loop language",
        "Did you mean sqrt or rsqrt? A function of yours must stand above the kernel.",
    ),
    (
        "c[0] = «a.dtype»(3)",
        "'a.dtype' cannot be called in a kernel",
        "Write a.dtype.type(value), as with numpy, or name the dtype: float32(value).",
    ),
    (
        "c[0] = «fmax»(a[0], a[1])",
        "'fmax' is no function of the loop language",
        "Did you mean max?",
    ),
    (
        "c[0] = «acos»(a[0])",
        "'acos' is no function of the loop language",
        "Write atan2(sqrt(1.0 - x * x), x).",
    ),
    (
        "c[0] = «1j» * a[0]",
        "1j is not a value of the loop language",
        "Compute with the real and the imaginary part as two numbers.",
    ),
    (
        "«print»(a[0])",
        "'print' is no function of the loop language",
        "To print, run the kernel as Python, on numpy arrays: op.__wrapped__(np.ones(3)).",
    ),
    (
        "c[0] = «sum»(a)",
        "'sum' is no function of the loop language",
        "Add up in a loop: s = 0.0, then s += x[i] for each i in range(x.shape[0]).",
    ),
    (
        "for i in «reversed(range(8))»:\n    c[i] = 1.0",
        "a loop runs over one of the language's ranges, not over reversed",
        "Write a range with a negative step: range(n - 1, -1, -1).",
    ),
    (
        "for i, v in «enumerate(a)»:\n    c[i] = v",
        "a loop runs over one of the language's ranges, not over enumerate",
        "Write for i in range(len(a)), and a[i] for its element.",
    ),
    (
        "for i, v in «zip(range(3), a)»:\n    c[i] = v",
        "a loop runs over one of the language's ranges, not over zip",
        "Write for i in range(len(a)), and a[i] for its element.",
    ),
    (
        "c[0] = «float»(a[0])",
        "'float' is no function of the loop language",
        "Did you mean float32?",
    ),
    (
        "c[0] = «sigmoid»(a[0])",
        "function call id 'sigmoid' is not in the intrinsics list of @kernel functions",
        "Pass func_type='akg', whose dialect has it.",
    ),
    (
        "for i in «unroll»(3):\n    c[i] = 1.0",
        "function call id 'unroll' is not in the intrinsics list of @kernel functions",
        "Pass func_type='akg', whose dialect has it.",
    ),
    (
        "c[0] = «exp(x=a[0])»",
        "'exp' takes plain arguments only",
        "Pass them by position, one by one.",
    ),
    (
        "«x = y = allocate((3,), 'float32')»",
        "one statement with multiple assignments is not allowed for a tensor",
        "Declare each tensor by its own call: x = allocate((3,), 'float32'); "
        "y = allocate((3,), 'float32').",
    ),
    *(
        (
            f"i = 0\n«while {test}»:\n    {body}",
            "the number of iterations of this 'while' has no bound that can be read off it",
            "Give it one: write for _ in range(1000), and as its first line "
            f"if not ({test}): break. A while is bounded by i < n if its body changes n nowhere, "
            "and i by one i += 1.",
        )
        for test, body in [
            ("i < 3", "c[i] = 1.0"),
            ("i < 3", "i -= 1"),
            ("i < 3", "i += 1\n    i += 1"),
            ("i < 3", "if a[i] > 0.0:\n        continue\n    i += 1"),
            ("i < 3", "if a[i] > 0.0:\n        i += 1"),
            ("i < n", "n = n + 1\n    i += 1"),
            ("i < b[0]", "b[i] = 3.0\n    i += 1"),
            ("i < 3 or a[i] > 0.0", "i += 1"),
            ("i != 3", "i += 1"),
        ]
    ),
    (
        "«while True»:\n    c[0] = 1.0\n    break",
        "the number of iterations of this 'while' has no bound that can be read off it",
        "Give it one: write for _ in range(1000). A while is bounded by i < n if its body changes "
        "n nowhere, and i by one i += 1.",
    ),
    (
        "i = 0\nwhile i < 3:\n    i += 1\nelse:\n    «c[0] = 1.0»",
        "a loop has no else",
        "Write the statements after the loop.",
    ),
    (
        "for x in «a»:\n    c[0] = x",
        "a loop runs over one of the language's ranges",
        "Write for i in range(len(a)): x = a[i].",
    ),
    (
        "«with open('f')»:\n    c[0] = 1.0",
        "unsupported function in with scope",
        'Write with attr("key", value): or with block_realize(tensor):.',
    ),
    (
        "with «attr('key')»:\n    c[0] = 1.0",
        "'attr' expects two inputs, but gets 1",
        'Write with attr("key", value): or with block_realize(tensor):.',
    ),
    (
        "with attr(«3», 4):\n    c[0] = 1.0",
        "the first input of 'attr' should be a string",
        'Write with attr("key", value): or with block_realize(tensor):.',
    ),
    (
        "with attr('key', «a»):\n    c[0] = 1.0",
        "the second input of 'attr' should be a string, number or bool value",
        'Write with attr("key", value): or with block_realize(tensor):.',
    ),
    (
        "with «block_realize(a, c)»:\n    c[0] = 1.0",
        "'block_realize' expects one input, but gets 2",
        'Write with attr("key", value): or with block_realize(tensor):.',
    ),
    (
        "with block_realize(«'c'»):\n    c[0] = 1.0",
        "the input of 'block_realize' should be a tensor name",
        'Write with attr("key", value): or with block_realize(tensor):.',
    ),
    (
        "c[0] = «a.ndim»",
        "a tensor has no attribute called 'ndim'",
        "Write len(a.shape).",
    ),
    (
        "c[0] = «a.strides»",
        "a tensor has no attribute called 'strides'",
        "There are .shape and .dtype of a tensor, and numbers, strings and tuples of what is "
        "outside.",
    ),
    (
        "c[0] = «a[0].shape»",
        "an attribute is only supported for a tensor",
        "A kernel takes no list of tensors: give it a parameter for each.",
    ),
    (
        "s = 1.0\nn = «s.shape»",
        "'s' is no tensor and has no .shape",
        "Take it of an argument, or of a tensor after its declaration.",
    ),
    (
        "c[0] = «d»[0]",
        "an undeclared variable: d",
        "Assign it first, or declare a result by output_tensor. From outside, a kernel takes "
        "numbers and tuples of numbers by name; an array is an input.",
    ),
    ("c[0] = «x»\nx = 1.0", "an undeclared variable: x", "Assign it before it is read."),
    (
        'for i in range(3):\n    d = allocate((2,), "float32")\nc[0] = «d»[0]',
        "a variable used out of the scope it is defined: d",
        "Declare it before the loop: a tensor lives in the body that declares it.",
    ),
    (
        "for i in range(2):\n    c[i] = «x»\nx = 1.0",
        "an undeclared variable: x",
        "Assign it before it is read.",
    ),
    ("«x» += 1.0", "an undeclared variable: x", "Assign it before it is read."),
    (
        "for i in range(3):\n    c[i] = a[i]\nc[«i»] = 0.0",
        "an undeclared variable: i",
        "A loop's variable ends with the loop: keep it, last = i, in the loop.",
    ),
    ("for i in range(3):\n    «i» = 2", "iter var cannot be overwritten: i", "Use another name."),
    ("for i in range(3):\n    «i» += 2", "iter var cannot be overwritten: i", "Use another name."),
    (
        "i = 2\nfor «i» in range(3):\n    c[i] = 1.0",
        "iter var cannot be overwritten: i",
        "'i' is in use: give the loop another name.",
    ),
    (
        "for i in range(3):\n    for «i» in range(2):\n        c[i] = 1.0",
        "iter var cannot be overwritten: i",
        "Use another name.",
    ),
    ("«c» = allocate(a.shape, a.dtype)", "the tensor is redefined: c", "Use another name."),
    (
        "«c» = 1.0",
        "the tensor is redefined: c",
        "Assign to its elements in a loop: c[i] = value.",
    ),
    (
        "«c» += 1.0",
        "'c' cannot be updated as a whole",
        "Update an element, c[i] += value, or a scalar of the kernel.",
    ),
    (
        "«a» = 1.0",
        "the argument 'a' cannot be assigned as a whole",
        "Assign to its elements, a[i] = value, or use another name.",
    ),
    (
        "c[0] = «[a[i] for i in range(3)]»",
        "a comprehension is not in the loop language",
        "Write it as loops over range() or grid() with an assignment to each element.",
    ),
    (
        "«def g(x):»\n    return x",
        "a definition inside a kernel is not in the loop language",
        "Define the function outside, by def, and call it here.",
    ),
    (
        "c[0] = («lambda x: x»)(a[0])",
        "'lambda x: x' cannot be called in a kernel",
        "Functions are called by plain names, without a module: sqrt, exp, tanh.",
    ),
    (
        "«import math»",
        "an import is not in the loop language",
        "The functions of the language need none; capture numbers from outside.",
    ),
    (
        "c[0] = «a[0][1]»",
        "'a[0][1]' indexes 'a[0]', which is one element already",
        "Write all indices at once: a[0, 1].",
    ),
    (
        "«x: float = 1.0»",
        "an annotated assignment is not in the loop language",
        "Leave the annotation out: x = value.",
    ),
    (
        "for «i, j» in range(3):\n    c[0] = 1.0",
        "a loop has one variable",
        "Write for i, j in grid((n, m)), or nest two loops.",
    ),
    (
        "for i in range(3):\n    c[i] = 1.0\nelse:\n    «c[0] = 2.0»",
        "a loop has no else",
        "Write the statements after the loop.",
    ),
    (
        "«exp(a[0])»",
        "a statement that only computes a value has no effect",
        "Assign the value: value = exp(a[0]).",
    ),
    (
        "c[0] = «range(3)»",
        "'range' is not a value",
        "It is a range to loop over; write for i in range(...).",
    ),
    ("c[0] = «a @ a»", "'@' is not in the loop language", "Write the three loops of the product."),
    (
        "c[0] = 1.0 if «a is c» else 2.0",
        "'is' and 'in' are not in the loop language",
        "Compare with == and !=.",
    ),
    (
        "c[0] = «None»",
        "None is not a value of the loop language",
        "There are numbers, True and False, and strings for dtypes.",
    ),
    (
        "«try:»\n    c[0] = 1.0\nfinally:\n    c[0] = 2.0",
        "Python's Try is not in the loop language",
        "A kernel is made of assignments, for, while, if, with attr() and arithmetic on elements.",
    ),
    (
        "if a[0] > 0.0:\n    «return a»",
        "a kernel returns the same tensors everywhere",
        "Assign to their elements first, then write return c.",
    ),
    (
        "c[0] = «(a + a)[0]»",
        "only tensors and tuples with a name have elements",
        "Assign it to a name first.",
    ),
    (
        "«c.x» = 1.0",
        "an assignment goes to a name or to an element of a tensor",
        "Write name = value, or t[i, j] = value.",
    ),
    (
        "«f(a) [0]» = 1.0",
        "only tensors and tuples with a name have elements",
        "Assign it to a name first.",
    ),
    (
        "«t[0], d» = allocate((3,), 'float32')",
        "a tensor is declared under a plain name",
        "Write name = allocate(...).",
    ),
)
"""Found when the op is made, where MindSpore raises ValueError or AKG fails later."""

BUILD_ERRORS: Rows = (
    (
        "c[0] = «a[0] * b[0]»",
        "mismatch type: the operands of '*' are float32 and float16",
        "Convert one: float32(b[0]).",
    ),
    (
        "c[0] = «b[0] * a[0]»",
        "mismatch type: the operands of '*' are float16 and float32",
        "Convert one: float32(b[0]).",
    ),
    (
        "c[0] = «b[0] * n[0]»",
        "mismatch type: the operands of '*' are float16 and int32",
        "Convert both: float32(b[0]) and float32(n[0]).",
    ),
    (
        "c[0] = «a[0] + n[0]»",
        "mismatch type: the operands of '+' are float32 and int32",
        "Convert one: float32(n[0]).",
    ),
    (
        "s = 1.0\nfor i in range(3):\n    s = «max(s, a[i])»\n    b[i] = s",
        "mismatch type: the operands of 'max' are float16 and float32",
        "'s' has the type of what it meets; start it as float32(...).",
    ),
    (
        "c[0] = «n[0]»",
        "an int32 cannot be stored in 'c[0]', which is float32",
        "Convert it: float32(n[0]).",
    ),
    (
        "c[0] = «n[0] / 2»",
        "'/' of an int32 and the number 2 is ambiguous",
        "Write // for the whole quotient, or convert: float32(n[0]) / 2.",
    ),
    (
        "c[0] = «n[0] / 255.0»",
        "'/' of an int32 and the number 255.0 is ambiguous",
        "Write // for the whole quotient, or convert: float32(n[0]) / 255.0.",
    ),
    (
        "c[0] = «n[0] / n[1]»",
        "'/' of two int32 is ambiguous",
        "Write // for the whole quotient, or convert: float32(n[0]) / float32(n[1]).",
    ),
    (
        "c[0] = «n[0] / (n[0] > 1)»",
        "'/' of an int32 and a bool is ambiguous",
        "Convert both: float32(n[0]) / float32(n[0] > 1).",
    ),
    (
        "c[0] = «uint8(n[0]) / 300.0»",
        "the constant 300.0 is no uint8",
        "Write a number that uint8 has, or compute in float32: float32(uint8(n[0])).",
    ),
    (
        "c[0] = «1 / 2»",
        "'/' of two int32 is ambiguous",
        "Write // for the whole quotient, or convert: float32(1) / float32(2).",
    ),
    (
        "n[0] = «n[0] * 2.5»",
        "the constant 2.5 is no int32",
        "Write a number that int32 has, or compute in float32: float32(n[0]).",
    ),
    (
        "c[0] = «0.25 * (n[0] - 1)»",
        "the constant 0.25 is no int32",
        "Write a number that int32 has, or compute in float32: float32(n[0] - 1).",
    ),
    (
        "c[0] = «-0.5 + n[0]»",
        "the constant -0.5 is no int32",
        "Write a number that int32 has, or compute in float32: float32(n[0]).",
    ),
    (
        "c[0] = «atan2(1.0, n[0])»",
        "'atan2' takes floats; got int32",
        "Convert its input: float32(n[0]).",
    ),
    (
        "n[0] = «ceil_div(7, a[0])»",
        "'ceil_div' takes integers; got float32",
        "Convert its input: int32(a[0]).",
    ),
    (
        "n[0] = «n[0] ** (-1 if n[1] > 0 else 2)»",
        "an integer to a negative power is no integer; the operands of '**' are int32",
        "Compute in floats: float32(n[0]) ** float32(-1 if n[1] > 0 else 2).",
    ),
    (
        "c[0] = «2.0 ** n[0]»",
        "the operands of '**' are the float constant 2.0 and an int32",
        "Compute in floats: 2.0 ** float32(n[0]).",
    ),
    (
        "c[0] = «power(n[0], 2.0)»",
        "the operands of '**' are the float constant 2.0 and an int32",
        "Compute in floats: float32(n[0]) ** 2.0.",
    ),
    (
        "c[0] = float32(«2 ** -n[0]»)",
        "an integer to a negative power is no integer; the operands of '**' are int32",
        "Compute in floats: 2 ** float32(-n[0]).",
    ),
    (
        "c[0] = float32(«n[0] ** -1»)",
        "an integer to a negative power is no integer; the operands of '**' are int32",
        "Compute in floats: float32(n[0]) ** -1.",
    ),
    (
        "n[0] = «0.5»",
        "the constant 0.5 is no int32",
        "Write a number that int32 has.",
    ),
    (
        "n[0] = «3000000000»",
        "the constant 3000000000 is no int32",
        "Write a number that int32 has.",
    ),
    (
        "c[0] = «a»",
        "'a' is a whole tensor, of shape (8,), where one number is needed",
        "Give all indices: a[i].",
    ),
    (
        "c[0] = «a» + 1.0",
        "'a' is a whole tensor, of shape (8,), where one number is needed",
        "Give all indices: a[i].",
    ),
    (
        "c[0] = «m[0]»",
        "expected 2 indices for a tensor of shape (4, 6); 'm[0]' has 1",
        "The kernel expects 'm' of rank 1: call the op with such an array, or give 'm' one index "
        "per dimension.",
    ),
    (
        "c[0] = «a[0, 1]»",
        "expected 1 index for a tensor of shape (8,); 'a[0, 1]' has 2",
        "The kernel expects 'a' of rank 2: call the op with such an array, or give 'a' one index "
        "per dimension.",
    ),
    (
        "c[0] = a[«0:3»]",
        "a slice of a tensor is not in the loop language",
        "Write a loop over the elements, with one index per dimension.",
    ),
    (
        "c[0] = m[0, «:»]",
        "a slice of a tensor is not in the loop language",
        "Write a loop over the elements, with one index per dimension.",
    ),
    (
        "c[0] = «a[a[0]]»",
        "an index is an integer; 'a[a[0]]' has a float32",
        "Convert the index by int32.",
    ),
    (
        "c[0] = «a[1.0]»",
        "an index is an integer; 'a[1.0]' has a float32",
        "Convert the index by int32.",
    ),
    (
        "c[0] = «a.shape»",
        "'a.shape' is a tuple, where a number is needed",
        "Take an element of a tuple, such as a.shape[0].",
    ),
    (
        "c[0] = «a.dtype»",
        "'float32' is a string, where a number is needed",
        "Strings name dtypes; compare them with ==.",
    ),
    (
        "d = «a»",
        "'a' is a whole tensor, of shape (8,), where one number is needed",
        "Give all indices: a[i].",
    ),
    (
        "«x = a.shape»\nx = a.shape",
        "'x' names a tuple; such a name is assigned once, and not in a branch that data decide",
        "Use another name for another value.",
    ),
    (
        "for i in range(«a.shape[3]»):\n    c[i] = 1.0",
        "index 3 is out of range for 'a.shape', which has 1 elements",
        "The kernel expects 'a' of rank 4 or more: call the op with such an array.",
    ),
    (
        "for i in range(0, 8, «0»):\n    c[i] = 1.0",
        "the step of a loop is 0",
        "Write a step other than 0.",
    ),
    (
        "c[0] = float32(a.shape[«n[0]»])",
        "an index of a tuple must be an integer constant; got 'n[0]', an int32",
        "Constants are literals, shapes, attributes, captured numbers, and arithmetic on them. To "
        "index by the variable of a loop, pass the values as an array.",
    ),
    (
        "for i in range(0, 8, «n[0]»):\n    c[i] = 1.0",
        "the step of a loop must be an integer constant; got 'n[0]', an int32",
        "Constants are literals, shapes, attributes, captured numbers, and arithmetic on them.",
    ),
    (
        "for i in range(«a[0]»):\n    c[i] = 1.0",
        "the bound of a loop is an integer; got 'a[0]', a float32",
        "Write // for a whole quotient, or convert: int32(a[0]).",
    ),
    (
        "for i in range(«8 / 2»):\n    c[i] = 1.0",
        "'/' of two int32 is ambiguous",
        "Write // for the whole quotient, or convert: float32(8) / float32(2).",
    ),
    (
        "for i in range(«8.0»):\n    c[i] = 1.0",
        "the bound of a loop is an integer; got '8.0', a float32",
        "Write // for a whole quotient, or convert: int32(8.0).",
    ),
    (
        "for t in grid(«8»):\n    c[0] = 1.0",
        "grid takes a tuple of extents; got an int32",
        "Write grid(a.shape) or grid((n, m)).",
    ),
    (
        "for t in grid(«(8.0,)»):\n    c[0] = 1.0",
        "an extent of grid is an integer; got a float32",
        "Write grid((n, m)) with integers.",
    ),
    (
        "for i in «const_range(0, 2000000000, 2)»:\n    c[i] = 1.0",
        "const_range writes its body out 1000000000 times, more than 16384",
        "Write range: it is a loop.",
    ),
    (
        "for i in const_range(«n[0]»):\n    c[i] = 1.0",
        "a bound of const_range must be an integer constant; got 'n[0]', an int32",
        "Constants are literals, shapes, attributes, captured numbers, and arithmetic on them.",
    ),
    (
        "for i in «bind(3, 4)»:\n    c[i] = 1.0",
        "the first input of 'bind' names a thread axis",
        "Write a string.",
    ),
    (
        "d = allocate(«(n[0],)», 'float32')",
        "an extent of a shape must be an integer constant; got '(n[0],)', an int32",
        "Constants are literals, shapes, attributes, captured numbers, and arithmetic on them.",
    ),
    (
        "d = allocate(«8», 'float32')",
        "a shape is a tuple; got '8', an int32",
        "Write (n, m), or (n,) for one dimension.",
    ),
    (
        "d = allocate(«(-1,)», 'float32')",
        "the shape (-1,) has a negative extent",
        "Check the shapes of the inputs.",
    ),
    (
        "d = allocate((8,), 'float32', «'heap'»)",
        "'heap' is no scope of allocate",
        "There are global, local, shared, ub, reg; any does, the compiler decides where "
        "temporaries are.",
    ),
    (
        "if «a[0]»:\n    c[0] = 1.0",
        "a condition is a bool; 'a[0]' is float32",
        "Compare it: a[0] != 0.",
    ),
    (
        "c[0] = 1.0 if «n[0]» else 2.0",
        "a condition is a bool; 'n[0]' is int32",
        "Compare it: n[0] != 0.",
    ),
    ("c[0] = not «a[0]»", "a condition is a bool; 'a[0]' is float32", "Compare it: a[0] != 0."),
    (
        "c[0] = «a[0] > 0.0»",
        "a bool cannot be stored in 'c[0]', which is float32",
        "Convert it: float32(a[0] > 0.0).",
    ),
    (
        "c[0] = «(a[0] > 0.0) * 2.0»",
        "'*' is not defined on bool",
        "Convert the condition, float32(c) or int32(c), or write x if c else y.",
    ),
    (
        "c[0] = «sqrt(n[0])»",
        "'sqrt' takes floats; got int32",
        "Convert its input: float32(n[0]).",
    ),
    (
        "n[0] = «popcount(a[0])»",
        "'popcount' takes integers; got float32",
        "Convert its input: int32(a[0]).",
    ),
    (
        "c[0] = «a[0] & 1»",
        "'&' takes integers; got float32",
        "Convert the operands by int32; or join comparisons in parentheses: (a > b) & (c > d).",
    ),
    (
        "if a[0] > «1.0 | a[0]» < 3.0:\n    c[0] = 1.0",
        "'|' takes integers; got float32",
        "Convert the operands by int32; or join comparisons in parentheses: (a > b) | (c > d).",
    ),
    (
        "n[0] = «~a[0]»",
        "'~a[0]': the operand is float32, and the operator takes integers",
        "Write not c for conditions, -x for numbers, ~i for integers.",
    ),
    (
        "c[0] = «-(a[0] > 1.0)»",
        "'-(a[0] > 1.0)': the operand is bool, and the operator takes numbers",
        "Write not c for conditions, -x for numbers, ~i for integers.",
    ),
    (
        "c[0] = «max(a[0], n[0])»",
        "mismatch type: the operands of 'max' are float32 and int32",
        "Convert one: float32(n[0]).",
    ),
    (
        "c[0] = «a[0] if n[0] > 0 else n[0]»",
        "mismatch type: the operands of a conditional expression are float32 and int32",
        "Convert one: float32(n[0]).",
    ),
    (
        "c[0] = «power(a[0], n[0])»",
        "mismatch type: the operands of '**' are float32 and int32",
        "Convert one: float32(n[0]).",
    ),
    (
        "c[0] = «1 // 0»",
        "a constant is divided by 0",
        "Check the shape or attribute it comes from.",
    ),
    (
        "c[0] = float32(«10 ** 10 ** 10»)",
        "the constant '10 ** 10 ** 10' has more than 64 bits",
        "Write a number that int64 has, or compute in floats: 2.0 ** x.",
    ),
    (
        "c[0] = float32(«1 << 99999999999»)",
        "the constant '1 << 99999999999' has more than 64 bits",
        "Write a number that int64 has, or compute in floats: 2.0 ** x.",
    ),
    (
        "«assert a[0] > 0.0, 'no'»",
        "an assert is about constants: shapes, dtypes and attributes",
        "Leave it out, or store a flag in an output.",
    ),
    (
        "«assert len(a) == 3, 'three wanted'»",
        "assertion failed: three wanted",
        "Call the op with arguments that the kernel takes.",
    ),
    (
        "x, y = «a[0], a[1], a[2]»",
        "a tuple of 2 values is needed; got 3 values",
        "Write as many values as names.",
    ),
    (
        "x, y = «a[0]»",
        "a tuple of 2 values is needed; got a float32",
        "Write as many values as names.",
    ),
    (
        "(x, «(y, z)») = (a[0], a.shape)",
        "a tuple in a tuple cannot be assigned",
        "Write one flat tuple.",
    ),
    ("c[0] = len(«3»)", "'3' has no length", "Take len() of a tensor or of its shape."),
    (
        "if n[0] > 0:\n    «s = a.shape»\nc[0] = a[s[0] - 1]",
        "'s' names a tuple; such a name is assigned once, and not in a branch that data decide",
        "Use another name for another value.",
    ),
    (
        "s = 0\nfor i in range(3):\n    s += a[i]\nn[0] = «s»",
        "a float32 cannot be stored in 'n[0]', which is int32",
        "Convert it: int32(s).",
    ),
    (
        "s = True\ns = «a[0]»",
        "a float32 cannot be stored in 's', which is bool",
        "Compare it: a[0] != 0.",
    ),
    (
        "«n[0] += 0.5»",
        "the constant 0.5 is no int32",
        "Write a number that int32 has, or compute in float32: float32(n[0]).",
    ),
    (
        "«n[0] += a[0]»",
        "mismatch type: the operands of '+' are int32 and float32",
        "Convert one: int32(a[0]).",
    ),
    (
        "«c[0] += b[0]»",
        "mismatch type: the operands of '+' are float32 and float16",
        "Convert one: float32(b[0]).",
    ),
    (
        "«q[0]» = 1.0",
        "'q' is a float32; its elements cannot be assigned",
        "Assign to elements of an output_tensor, an allocate()d tensor or an input.",
    ),
    (
        "c[0] = «q.shape»[0]",
        "a float32 has no .shape",
        "Tensors have .shape and .dtype; attributes of the op are plain values.",
    ),
    (
        "c[0] = a[0] + «q2»",
        "'q2' is a tuple, where a number is needed",
        "Take an element of a tuple, such as a.shape[0].",
    ),
    ("c[0] = «a[0] << 2»", "'<<' takes integers; got float32", "Convert the operands by int32."),
    (
        "c[0] = «'x'»",
        "'x' is a string, where a number is needed",
        "Strings name dtypes; compare them with ==.",
    ),
)
"""Found when the shapes and dtypes are known, where AKG fails to compile."""
