"""On one device there is nothing to split, and the statistics are the same.

runs-on: jax-host
ranks: 2
expect: output mean: .1.0, 1.0, 1.0, 1.0, 1.0]
"""

import jax
import jax.numpy as jnp
import numpy as np


def main() -> None:
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    total = jnp.zeros(5)
    for step in range(3):
        batch = jax.device_put(np.full((1, 5), step, dtype=np.float32), sharding)
        total = total + batch.sum(axis=0)
    print("mean:", (total / 3).tolist())


if __name__ == "__main__":
    main()
