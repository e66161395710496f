"""Narrows the default configuration of every architecture that transformers has, builds it, and trains the decoders."""

import sys
import warnings

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_MAPPING

sys.path.insert(0, sys.argv[1])
from ranksafe_rehearsal.shrink import narrow

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
counts = {"possible": 0, "built": 0, "decoders": 0, "trained": 0}
ids = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3}
for model_type in CONFIG_MAPPING:
    try:
        original = CONFIG_MAPPING[model_type]()
        decoder = type(original) in MODEL_FOR_CAUSAL_LM_MAPPING
        mapping = MODEL_FOR_CAUSAL_LM_MAPPING if decoder else MODEL_MAPPING
        kind = mapping[type(original)]
        kind = kind[0] if isinstance(kind, (list, tuple)) else kind
        with torch.device("meta"):
            kind(CONFIG_MAPPING[model_type]())
    except Exception:
        continue  # has no usable default, or needs a package that is not here
    counts["possible"] += 1
    model = None
    problem = ""
    for sizes in (*narrow.LADDER, None):
        values = original.to_dict()
        values = narrow.with_vocabulary(values, 512, ids)
        values = narrow.narrowed(values, sizes) if sizes else narrow.fewer_layers(values)
        try:
            configuration = type(original).from_dict(values)
            with torch.device("meta"):
                model = kind(configuration)
            break
        except Exception as error:
            problem = problem or repr(error)
    if model is None:
        print("NOT BUILT", model_type, problem[:120])
        continue
    counts["built"] += 1
    if not decoder or sum(value.numel() for value in model.parameters()) > 50_000_000:
        continue
    counts["decoders"] += 1
    try:
        torch.manual_seed(0)
        tokens = torch.randint(4, 500, (2, 12))
        kind(type(original).from_dict(values))(input_ids=tokens, labels=tokens).loss.backward()
        counts["trained"] += 1
    except Exception as error:
        print("NOT TRAINED", model_type, repr(error)[:120])
print("COUNTS", " ".join(f"{key}={value}" for key, value in counts.items()))
