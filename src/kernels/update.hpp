#pragma once
// The loops of update kernels: one pass over a parameter, its gradient and its states, whatever the optimizer. Hides
// the factor of clipping and the moving average. Included by the optimizers' kernels.
#include "device/rows.hpp"
#include "kernels/kernel.hpp"
#include "kernels/layout.hpp"

namespace soybean::kernels {

/// The operands of an update node (ops/updates.hpp), checked: weight, gradient, hyper, states, norms, factor.
struct UpdateCall {
  const Call& call;
  int own_states = 0; ///< without the average

  const TensorView& w() const { return call.inputs[0]; }
  const TensorView& grad() const { return call.inputs[1]; }
  const double* hyper() const { return call.inputs[2].as<const double>(); }
  const TensorView& next() const { return call.outputs[0]; }
  bool averages() const { return call.node.attributes.has("average"); }
  bool clips() const { return call.node.attributes.has("clipped"); }
  template<class T>
  const T* state(int i) const {
    return call.inputs[3 + static_cast<std::size_t>(i)].as<const T>();
  }
  template<class T>
  T* next_state(int i) const {
    return call.outputs[1 + static_cast<std::size_t>(i)].as<T>();
  }
  /// Where the factor of clipping is, nullptr without.
  const double* factor() const { return clips() ? call.inputs.back().as<const double>() : nullptr; }
  /// ‖weight‖² and ‖gradient‖² of the whole tensors, before clipping; for nodes that have them.
  const double* norms() const { return call.inputs[3 + own_states + (averages() ? 1 : 0)].as<const double>(); }
  double real(std::string_view name) const { return call.node.attributes.real(name); }
  bool flag(std::string_view name) const { return call.node.attributes.integer(name) != 0; }
  double lr_scale() const { return call.node.attributes.has("lr_scale") ? real("lr_scale") : 1; }
};

/// Throws Bug unless the operands are alike and of that type.
inline UpdateCall update_call(const Call& call, int own_states, DType type) {
  const UpdateCall update{call, own_states};
  const int states = own_states + (update.averages() ? 1 : 0);
  expect(update.w(), type);
  expect_alike(update.w(), update.grad());
  expect_alike(update.w(), update.next());
  expect(call.inputs[2], DType::f64);
  ensure(static_cast<int>(call.outputs.size()) == 1 + states, "an update with other states than it has");
  for (int s = 0; s < states; ++s) {
    expect_alike(update.w(), call.inputs[3 + static_cast<std::size_t>(s)]);
    expect_alike(update.w(), call.outputs[1 + static_cast<std::size_t>(s)]);
  }
  return update;
}

/// The factor of clipping, or 1, read where kernels run without a branch: scale + part · *at.
template<class T>
struct Clip {
  const double* at;
  T scale, part;
  KOKKOS_INLINE_FUNCTION T operator()() const { return scale + part * static_cast<T>(*at); }
};
template<class T>
Clip<T> make_clip(const UpdateCall& update) {
  return update.clips() ? Clip<T>{update.factor(), 0, 1} : Clip<T>{update.hyper(), 1, 0};
}

/// average ← d·average + (1−d)·w; at the first step (hyper[1] = 0) average ← w.
template<class T>
struct Average {
  const T* old;
  T* next;
  const double* hyper;
  T taken; ///< 1 − d
  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, T w) const {
    const T part = hyper[1] == 0 ? T(1) : taken, before = old[i];
    next[i] = part == T(1) ? w : before + part * (w - before);
  }
};
template<class T>
Average<T> make_average(const UpdateCall& update) {
  return {update.state<T>(update.own_states), update.next_state<T>(update.own_states), update.hyper(),
          static_cast<T>(1 - update.real("average"))};
}

/// next[i] = step(i, w[i], gradient[i]) for every weight; step takes care of the optimizer's own states.
template<class Step>
void update_weights(const Exec& exec, const UpdateCall& update, const char* label, Step step) {
  const float *w = update.w().as<const float>(), *grad = update.grad().as<const float>();
  float* next = update.next().as<float>();
  const Clip<float> clip = make_clip<float>(update);
  if (!update.averages()) {
    device::flat_for(
        exec, update.w().size(), label, KOKKOS_LAMBDA(std::int64_t i) { next[i] = step(i, w[i], clip() * grad[i]); });
    return;
  }
  const Average<float> average = make_average<float>(update);
  device::flat_for(
      exec, update.w().size(), label, KOKKOS_LAMBDA(std::int64_t i) {
        const float value = step(i, w[i], clip() * grad[i]);
        next[i] = value;
        average(i, value);
      });
}

namespace reference {

/// The same in f64 on the host.
template<class Step>
void update_weights(const UpdateCall& update, Step step) {
  const double *w = update.w().as<const double>(), *grad = update.grad().as<const double>();
  double* next = update.next().as<double>();
  const Clip<double> clip = make_clip<double>(update);
  const bool averages = update.averages();
  const Average<double> average = averages ? make_average<double>(update) : Average<double>{};
  for (std::int64_t i = 0; i < update.w().size(); ++i) {
    const double value = step(i, w[i], clip() * grad[i]);
    next[i] = value;
    if (averages) average(i, value);
  }
}

} // namespace reference

} // namespace soybean::kernels
