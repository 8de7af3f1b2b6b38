## Results into arrays of the caller on the device, in the form in which functions return them. What is checked of every
## answer is counted here, since the answer does not come to the host.
##
##   neighbour tables  --deliver_neighbours-->  indices, distances (not squared, in the data's unit)
##   rho               --deliver_skill-->       rho
##   pixels [row][column][word]  --deliver_counts-->  counts; the other half of a symmetric image, too
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   dtype  number type of data and distances: float32 or float64
## ---- end of parameters ----
#include "division.clh"

// All arrays of the caller begin with element `first_...` of their memory. wrong counts what cannot be.

// n entries of tables [query row][neighbour]: rows and squared distances of data that were divided by 2^exponent.
kernel void deliver_neighbours(global const int* restrict rows, global const real* restrict squared, const ulong n,
                               const int n_library, const int exponent, global int* restrict indices,
                               const ulong first_index, global real* restrict distances, const ulong first_distance,
                               global uint* restrict wrong) {
  const size_t at = get_global_id(0);
  if (at >= n) return;
  const int row = rows[at];
  if (row < -1 || row >= n_library) atomic_inc(wrong);
  indices[first_index + at] = row;
  distances[first_distance + at] = row < 0 ? (real)INFINITY : ldexp(root(squared[at]), exponent);
}

// n correlations from element `begin` on.
kernel void deliver_skill(global const real* restrict rho, const ulong begin, const ulong n, const real most,
                          global real* restrict out, const ulong first_out, global uint* restrict wrong) {
  const size_t at = get_global_id(0);
  if (at >= n) return;
  const real r = rho[begin + at];
  if (fabs(r) > most) atomic_inc(wrong);  // not of NaN
  out[first_out + at] = r;
}

// Work-item (column, row). Of a symmetric image only pixels on and above the diagonal were counted. A pixel has `words` words.
kernel void deliver_counts(global const uint* restrict image, const int n_columns, const int symmetric, const int words,
                           global long* restrict counts, const ulong first_count) {
  const int column = get_global_id(0), row = get_global_id(1);
  if (column >= n_columns) return;
  const bool other = symmetric && row > column;
  const size_t at = ((size_t)(other ? column : row) * n_columns + (other ? row : column)) * words;
  ulong cells = image[at];
  if (words > 1) cells |= (ulong)image[at + 1] << 32;
  counts[first_count + (size_t)row * n_columns + column] = (long)cells;
}
