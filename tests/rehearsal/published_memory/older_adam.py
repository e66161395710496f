"""Adam as torch's nightly builds had it until July 2023: its foreach step takes two lists of the parameters' size at once, not
one (pytorch/pytorch, issue 97712)."""

import torch


class OlderAdam(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            trained = [each for each in group["params"] if each.grad is not None]
            for each in trained:
                if not self.state[each]:
                    self.state[each] = {
                        "step": 0,
                        "mean": torch.zeros_like(each),
                        "square": torch.zeros_like(each),
                    }
                self.state[each]["step"] += 1
            gradients = [each.grad for each in trained]
            means = [self.state[each]["mean"] for each in trained]
            squares = [self.state[each]["square"] for each in trained]
            steps = [self.state[each]["step"] for each in trained]
            torch._foreach_mul_(means, 0.9)
            torch._foreach_add_(means, gradients, alpha=0.1)
            torch._foreach_mul_(squares, 0.999)
            torch._foreach_addcmul_(squares, gradients, gradients, 0.001)
            roots = torch._foreach_sqrt(squares)
            torch._foreach_div_(roots, [(1 - 0.999**step) ** 0.5 for step in steps])
            divisors = torch._foreach_add(roots, 1e-8)
            sizes = [-group["lr"] / (1 - 0.9**step) for step in steps]
            torch._foreach_addcdiv_(trained, means, divisors, sizes)
