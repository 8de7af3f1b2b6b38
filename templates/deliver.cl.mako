## Results into arrays of the caller on the device, in the form in which functions return them. What is checked of every
## answer is counted here, since the answer does not come to the host.
##
##   neighbour tables  --deliver_neighbours-->  indices, distances (not squared, in the data's unit)
##   rho               --deliver_skill-->       rho
##   pixels [row][column][word]  --deliver_counts-->  counts; the other half of a symmetric image, too
##                               --deliver_means-->   mean distances (float64 only), likewise
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

// A pixel of an image [row][column][words]. Of a symmetric one only pixels on and above the diagonal were computed.
inline ulong pixel(global const uint* restrict image, const int n_columns, const int symmetric, const int words, const int row,
                   const int column) {
  const bool other = symmetric && row > column;
  const size_t at = ((size_t)(other ? column : row) * n_columns + (other ? row : column)) * words;
  return words > 1 ? image[at] | (ulong)image[at + 1] << 32 : image[at];
}

// Work-item (column, row).
kernel void deliver_counts(global const uint* restrict image, const int n_columns, const int symmetric, const int words,
                           global long* restrict counts, const ulong first_count) {
  const int column = get_global_id(0), row = get_global_id(1);
  if (column >= n_columns) return;
  counts[first_count + (size_t)row * n_columns + column] = (long)pixel(image, n_columns, symmetric, words, row, column);
}
%if dtype == "float64":

// Work-item (column, row). present_rows, present_columns: points of each pixel's rows and columns that are without a gap. Sums are
// those of distances divided by 2^exponent. NaN where a pixel has no cell.
kernel void deliver_means(global const uint* restrict image, const int n_columns, const int symmetric, const int words,
                          global const double* restrict present_rows, global const double* restrict present_columns,
                          const int exponent, global double* restrict means, const ulong first_mean) {
  const int column = get_global_id(0), row = get_global_id(1);
  if (column >= n_columns) return;
  const double cells = present_rows[row] * present_columns[column];
  const double sum = (double)(long)pixel(image, n_columns, symmetric, words, row, column);
  means[first_mean + (size_t)row * n_columns + column] = cells > 0 ? ldexp(sum / cells, exponent) : (double)NAN;
}
%endif
