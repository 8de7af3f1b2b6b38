## Surrogates of one power spectrum with random phases, drawn on the device as targets of a lookup, with the bits that the host
## gives them.
##
##   phases, by Philox  --wave_turns-->  amplitudes [frequency][draw]  --wave_sums-->  targets [step][column], float32
##                                         of some draws --wave_pick-->  the host, which transforms them
##   series, what the host transformed  --wave_place-->  their columns of the targets
##
## The transform back is a sum over all frequencies for each step: as a product of matrices it takes n / 2 multiply-adds for a
## number, more than a fast transform, but a device that is quick in double precision does them sooner than it gets the numbers.
## Steps t and n - t share their sums: x(t) = C(t) - S(t), x(n - t) = C(t) + S(t), C of the cosines and S of the sines.
##
## The host adds in another order, so that both differ in the last digits of a double, of which float32 keeps less than half.
## Where a number is so near the middle of two floats that this may decide, its draw is marked, and left to the host.
##
## Types and names in capitals that are not defined here come from numeric.clh (numbers, sentinels) and philox.clh (random
## numbers).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   dtype  number type of data and distances: float32 or float64
## ---- end of parameters ----
#include "numeric.clh"
#define PHILOX_WORD ulong
#include "philox.clh"
#define WG 256
#define EDGE 64   // draws, and steps, of a work-group
#define DEPTH 16  // frequencies in local memory at a time
#define SIDE 16   // work-items along either edge, each with every SIDE-th draw and step
#define OWN (EDGE / SIDE)

// Draw d is surrogate first + d % each of series d / each, where draws count from `begin`, the first of this launch.
// keys: [series][group of 32 surrogates][2], of the random streams; turns: [65536][2], the phases that there are;
// spectra: [series][frequencies + 1]; amplitudes: [frequency from 1 on][stride][2]. Work-item (draw, frequency).
kernel void wave_turns(global const ulong* restrict keys, const int n_groups, global const double* restrict turns,
                       global const double* restrict spectra, const int n_steps, const int begin, const int end, const int first,
                       const int each, const int stride, global double* restrict amplitudes) {
  const int here = get_global_id(0), f = get_global_id(1) + 1, frequencies = n_steps / 2;
  if (here >= stride) return;
  double2 a = (double2)(0);
  if (begin + here < end) {
    const int series = (begin + here) / each, surrogate = first + (begin + here) % each;
    global const ulong* restrict key = keys + ((size_t)series * n_groups + surrogate / 32 - first / 32) * 2;
    // Numbers of 16 bits, four in a word and sixteen in a step of Philox, whose counter begins at 1.
    const ulong number = (ulong)(surrogate % 32) * (frequencies + 1) + f;
    ulong c0 = number / 16 + 1, c1 = 0, c2 = 0, c3 = 0;
    philox(&c0, &c1, &c2, &c3, key[0], key[1]);
    const int word = (int)(number / 4) & 3;
    const ulong drawn = word == 0 ? c0 : word == 1 ? c1 : word == 2 ? c2 : c3;
    const double2 turn = vload2((size_t)(drawn >> 16 * (number & 3)) & 0xFFFF, turns);
    a = turn * spectra[(size_t)series * (frequencies + 1) + f];
    // The highest frequency of an even number of steps is real, keeps its variance on average, and counts once.
    if (2 * f == n_steps) a = (double2)(sqrt((double)2) * a.x / 2, 0);
  }
  vstore2(a, (size_t)(f - 1) * stride + here, amplitudes);
}

// roots: [n_steps][2], cosine and sine of 2 pi j / n_steps. of_series: [series][5] are the mean, what is subtracted, the factor
// of the layout of targets, what a number may be off by, and whether `bases` [series][n_steps] are to be added (NaN in gaps).
// Draw d is column d + d / each + 1 of the targets, as each series lies before its surrogates. marked: [draw of the launch], not
// 0 where the host has to transform.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void wave_sums(global const double* restrict amplitudes, global const double* restrict roots, global const double* restrict of_series,
               global const double* restrict bases, const int n_steps, const int begin, const int end, const int each,
               const int stride, const int target_stride, global float* restrict targets, global int* restrict marked) {
  local double2 wave[DEPTH * EDGE], root[DEPTH * EDGE];
  const int id = get_local_id(0), frequencies = n_steps / 2;
  const int first_draw = get_group_id(0) * EDGE, first_step = get_group_id(1) * EDGE;
  const int x = id % SIDE, y = id / SIDE;        // its draws and steps: x + i SIDE, y + i SIDE
  const int column = id % EDGE, row = id / EDGE;  // what it loads: a draw or step, and every WG / EDGE-th frequency
  const int t = first_step + column;
  // Frequency f at step t turns by f t / n_steps: the next one that is loaded is as far again.
  int at = (int)((ulong)(row + 1) * t % n_steps);
  const int further = (int)((ulong)(WG / EDGE) * t % n_steps);
  double cosines[OWN][OWN], sines[OWN][OWN];
%for i in range(4):
%for j in range(4):
  cosines[${i}][${j}] = sines[${i}][${j}] = 0;
%endfor
%endfor
  for (int f = 0; f < frequencies; f += DEPTH) {
    for (int k = row; k < DEPTH; k += WG / EDGE) {
      const bool there = f + k < frequencies;
      wave[k * EDGE + column] = there ? vload2((size_t)(f + k) * stride + first_draw + column, amplitudes) : (double2)(0);
      root[k * EDGE + column] = vload2(at, roots);
      at += further;
      at -= at >= n_steps ? n_steps : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < DEPTH; ++k) {
%for i in range(4):
      const double2 a${i} = wave[k * EDGE + x + ${i} * SIDE];
      const double2 r${i} = root[k * EDGE + y + ${i} * SIDE];
%endfor
%for i in range(4):
%for j in range(4):
      cosines[${i}][${j}] = fma(a${i}.x, r${j}.x, cosines[${i}][${j}]);
      sines[${i}][${j}] = fma(a${i}.y, r${j}.y, sines[${i}][${j}]);
%endfor
%endfor
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = 0; i < OWN; ++i) {
    const int draw = begin + first_draw + x + i * SIDE;
    if (draw >= end) continue;
    const int series = draw / each;
    global const double* restrict own = of_series + series * 5;
    global const double* restrict base = bases + (size_t)series * n_steps;
    global float* restrict target = targets + draw + series + 1;
    bool near = false;
    for (int j = 0; j < OWN; ++j) {
      const int early = first_step + y + j * SIDE, late = n_steps - early;
      if (early > late) continue;
      for (int side = 0; side < (early > 0 && early < late ? 2 : 1); ++side) {
        const int step = side ? late : early;
        const double sum = cosines[i][j] + (side ? sines[i][j] : -sines[i][j]);
        double value = sum * 2 / n_steps + own[0];
        if (own[4] != 0) value += base[step];
        value = (value - own[1]) * own[2];
        const bool gap = isnan(value);
        near |= !gap && (float)(value - own[3]) != (float)(value + own[3]);
        target[(size_t)step * target_stride] = gap ? (float)GAP : (float)value;
      }
    }
    if (near) marked[draw - begin] = 1;
  }
}

// Amplitudes of some draws of the launch to picked [i][frequencies + 1][2], as a transform back wants them. Work-item (frequency, i).
kernel void wave_pick(global const double* restrict amplitudes, global const int* restrict draws, const int n_steps,
                      const int stride, global double* restrict picked) {
  const int f = get_global_id(0), i = get_global_id(1), frequencies = n_steps / 2;
  if (f > frequencies) return;
  double2 a = (double2)(0);
  if (f > 0) a = vload2((size_t)(f - 1) * stride + draws[i], amplitudes);
  vstore2(2 * f == n_steps ? 2 * a : a, (size_t)i * (frequencies + 1) + f, picked);
}

// n series [series][n_steps] to columns of the targets. Work-item (step, series).
kernel void wave_place(global const float* restrict series, global const int* restrict columns, const int n_steps,
                       const int target_stride, global float* restrict targets) {
  const int t = get_global_id(0), i = get_global_id(1);
  if (t < n_steps) targets[(size_t)t * target_stride + columns[i]] = series[(size_t)i * n_steps + t];
}

// Zeros behind the last column and the last row of targets. Work-item (column, row).
kernel void wave_border(const int n_steps, const int width, const int target_stride, global float* restrict targets) {
  const int column = get_global_id(0), t = get_global_id(1);
  if (column < target_stride && (column >= width || t >= n_steps)) targets[(size_t)t * target_stride + column] = 0;
}
