"""An agent with two tools, on the model that is shipped along or on any other.

    python examples/tools_and_answer.py "How much do tea and coffee cost together?"

With OPENAI_API_KEY set, or an Ollama server running, that model is taken instead.
"""

import sys

from sanderling import CodeAgent, tool
from sanderling.models import choose_model

PRICES = {"tea": 4.5, "coffee": 3.25, "cocoa": 6.0}


@tool
def price(product: str) -> float:
    """Looks up what a product costs, in euros.

    Args:
        product: One of those that `products` lists.
    """
    return PRICES[product]


@tool
def products() -> list[str]:
    """Lists the products."""
    return list(PRICES)


def main() -> None:
    task = " ".join(sys.argv[1:]) or "How much dearer is tea than coffee?"
    model, why = choose_model()
    print(why)
    with CodeAgent(tools=[price, products], model=model) as agent:
        print("The answer:", agent.run(task))


if __name__ == "__main__":
    main()
