"""A statement of this file is still being typed."""

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


def main() -> None:
    model = AutoModelForCausalLM.from_pretrained("gpt2", device_map="auto")
    trainer = Trainer(model=model, args=TrainingArguments("out"))
    trainer.train(

def evaluate(


if __name__ == "__main__":
    main()
