"""Rules about the model, its loss and the Trainer around it."""
