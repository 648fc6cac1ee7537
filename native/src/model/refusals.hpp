#pragma once

#include "model/keys.hpp"

namespace mashbox::model {

/// Refuses, by name, every key that changes the arithmetic and that the family's mapping has not looked at, unless its value means
/// that it is off. Nothing that matters is ignored in silence.
void refuseUnseenKeys(Keys& keys);

} // namespace mashbox::model
