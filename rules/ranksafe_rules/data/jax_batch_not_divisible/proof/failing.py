"""A batch of one sample cannot be split over the devices of a mesh.

runs-on: jax-host
ranks: 2
expect: exception IndivisibleError: implies that array axis 0 is partitioned 2 times, but the dimension size is 1
frame: batch = jax.device_put(np.full((1, 5), step, dtype=np.float32), sharding)
"""

import jax
import jax.numpy as jnp
import numpy as np


def main() -> None:
    sharding = jax.sharding.NamedSharding(
        jax.sharding.Mesh(jax.devices(), ("batch",)), jax.sharding.PartitionSpec("batch")
    )
    total = jnp.zeros(5)
    for step in range(3):
        batch = jax.device_put(np.full((1, 5), step, dtype=np.float32), sharding)
        total = total + batch.sum(axis=0)
    print("mean:", (total / 3).tolist())


if __name__ == "__main__":
    main()
