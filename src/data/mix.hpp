#pragma once
// Samples mixed with others to train with: mixup (Zhang et al., arXiv 1710.09412) and cutmix (Yun et al., arXiv
// 1905.04899). What is mixed into a sample, and how much of it, is a function of (seed, sample, epoch) alone, so the
// same on every rank; the partner may be any training sample, changed as it itself is in that epoch. Used by the
// loader.
#include "data/augment.hpp"
#include "data/draws.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace soybean::data {

struct Mix {
  std::int64_t partner = 0;   ///< a training sample; the sample itself where nothing is mixed
  double share = 1;           ///< of the sample itself, in its label, and by mixup in its values
  std::optional<Hole> window; ///< cutmix: the pixels that are the partner's
};

/// The mix of the first step whose chance comes up; steps that do not mix are passed over. `samples`: to train with.
Mix mix_for(const std::vector<config::AugmentStep>& steps, const AugmentKey& key, std::int64_t samples,
            const AugmentTarget& target);

/// A number of the distribution Beta(alpha, alpha), alpha > 0, as one of two that are of Gamma(alpha) over their sum
/// (Marsaglia and Tsang, "A simple method for generating gamma variables", 2000).
double draw_beta(double alpha, Draws& draws);

/// Mixes the partner's values into a sample's, both the part `part` of it: share·x + (1 − share)·partner's, or the
/// pixels of the window.
template<class T>
void blend(const Mix& mix, const Box& part, const T* partner, T* values);

} // namespace soybean::data
