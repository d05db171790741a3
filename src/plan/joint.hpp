#pragma once
// The best plan over all cuts jointly: classes of choices first, then the members of those that could be part of a
// plan as cheap as is wanted. Called inside src/plan only.
#include "plan/setting.hpp"

namespace soybean::plan {

/// The best plan at most as costly as `incumbent` in which no rank is without work where that can be avoided, `also`
/// (per variable, may be empty) being allowed in any case. Without a plan: `bound` and `optimal` say what is known;
/// `optimal` is false, too, where there are too many plans to look at.
Found joint(const Setting& setting, const Rules& rules, std::int64_t incumbent, std::string_view strategy,
            const std::vector<Choices>& also = {});

} // namespace soybean::plan
