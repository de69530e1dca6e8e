"""A closure and a tensor -> a perturbation: by gradient ascent, or in closed form where the decoder is linear."""
