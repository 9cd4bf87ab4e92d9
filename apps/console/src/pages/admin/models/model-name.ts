/** What a model of the price list is called. */

/** Stands for every model without a price of its own. */
const ANY_MODEL = '*';

export function modelName(model: string): string {
  return model === ANY_MODEL ? 'All other models' : model;
}
