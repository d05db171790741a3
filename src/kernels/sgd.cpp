// SGD, f32. n weights: 12n bytes and 4n flops, with momentum 20n bytes and 8n flops. Results may be the memory of w and
// v.
#include "kernels/sgd.hpp"

#include "kernels/formulas.hpp"
#include "kernels/update.hpp"

namespace soybean::kernels {

namespace {

struct Plain {
  formulas::Sgd<float> sgd;
  const double* hyper;
  float scale;
  KOKKOS_INLINE_FUNCTION float operator()(std::int64_t, float w, float grad) const {
    return w - scale * static_cast<float>(hyper[0]) * sgd.gradient(grad, w);
  }
};

struct WithMomentum {
  formulas::Sgd<float> sgd;
  const double* hyper;
  float scale;
  const float* v;
  float* v_next;
  KOKKOS_INLINE_FUNCTION float operator()(std::int64_t i, float w, float grad) const {
    const float g = sgd.gradient(grad, w), moved = sgd.velocity(v[i], g);
    v_next[i] = moved;
    return w - scale * static_cast<float>(hyper[0]) * sgd.step(g, moved);
  }
};

} // namespace

void run_sgd_update(const Exec& exec, const Call& call) {
  const bool momentum = call.node.attributes.real("momentum") != 0;
  const UpdateCall update = update_call(call, momentum ? 1 : 0, DType::f32);
  const auto sgd =
      formulas::make_sgd<float>(update.real("momentum"), update.real("weight_decay"), update.flag("nesterov"));
  const auto scale = static_cast<float>(update.lr_scale());
  if (momentum)
    update_weights(exec, update, "soybean::sgd_update::momentum",
                   WithMomentum{sgd, update.hyper(), scale, update.state<float>(0), update.next_state<float>(0)});
  else
    update_weights(exec, update, "soybean::sgd_update", Plain{sgd, update.hyper(), scale});
}

} // namespace soybean::kernels
