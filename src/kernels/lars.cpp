// LARS, f32. n weights: 12n bytes and 4n flops, with momentum 20n bytes and 6n flops. Results may be the memory of w
// and v.
#include "kernels/lars.hpp"

#include "kernels/lars_rate.hpp"
#include "kernels/update.hpp"

namespace soybean::kernels {

namespace {

template<bool with_momentum>
struct Lars {
  LarsRate layer;
  const double* hyper;
  double scale;
  float decay, momentum;
  const float* v;
  float* v_next;

  KOKKOS_INLINE_FUNCTION float operator()(std::int64_t i, float w, float grad) const {
    float step = static_cast<float>(scale * hyper[0] * layer()) * (grad + decay * w);
    if constexpr (with_momentum) {
      step += momentum * v[i];
      v_next[i] = step;
    }
    return w - step;
  }
};

} // namespace

void run_lars_update(const Exec& exec, const Call& call) {
  const bool with_momentum = call.node.attributes.real("momentum") != 0;
  const UpdateCall update = update_call(call, with_momentum ? 1 : 0, DType::f32);
  const LarsRate layer{update.real("trust"), update.real("weight_decay"), update.real("eps"),
                       update.flag("adapted") ? update.norms() : nullptr, update.factor()};
  const auto decay = static_cast<float>(update.real("weight_decay"));
  const auto momentum = static_cast<float>(update.real("momentum"));
  if (with_momentum)
    update_weights(exec, update, "soybean::lars_update::momentum",
                   Lars<true>{layer, update.hyper(), update.lr_scale(), decay, momentum, update.state<float>(0),
                              update.next_state<float>(0)});
  else
    update_weights(exec, update, "soybean::lars_update",
                   Lars<false>{layer, update.hyper(), update.lr_scale(), decay, momentum, nullptr, nullptr});
}

} // namespace soybean::kernels
