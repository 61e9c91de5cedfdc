// levels: sm_75
// The float16 kernels of elementwise.cu.
#define ELEMENT WwHalf
#define DTYPE f16
#include "elementwise.cu"
