"""What ``torch.cuda`` finds below it: the functions and classes that ``torch._C`` has in a build with CUDA.

They are put into ``torch._C`` right after it was loaded, so that ``torch.cuda`` itself runs as it is.
"""
