"""Azure Personalizer's API over the two calls: models, translation, the book of events, routes.

``docs/personalizer.md`` says what each of its words means here.
"""
