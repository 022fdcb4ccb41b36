import { saleParams } from '../../contract/fields.js';
import { endedSale, saleSchema } from '../../contract/sales.js';
import { assertNever } from '../../core/errors.js';
import { readSaleChange, saleChange, type SaleCancelled } from '../../sales/edit-sale.js';
import { json, problem, type Answer } from '../../http/answer.js';
import { badFields, checkedBody, operatorRoute } from '../../http/route.js';
import { saleBody } from './routes.js';
import type { SaleServices } from './services.js';

const EARLIER_WAITS =
  'An earlier change of the sale waits until its stock is rebuilt. This change was not made. Try again later.';

export const editSale = operatorRoute({
  method: 'patch',
  path: '/admin/v1/sales/{saleId}',
  operationId: 'editSale',
  summary:
    'Changes title, closing time or stock of a sale that is not closed, and the price of a draft. A lower stock takes free units, all or none. Safe to repeat.',
  access: 'admin',
  params: saleParams,
  body: checkedBody(saleChange.meta({ id: 'SaleChange', minProperties: 1 }), (json) => {
    const read = readSaleChange(json);
    return 'change' in read ? { value: read.change } : read;
  }),
  answers: { 200: { description: 'the changed sale', schema: saleSchema } },
  problems: ['not_found', 'wrong_state', 'units_not_free', 'repairing'],
  async handle({ params: { saleId }, body, userId }, { editor }: SaleServices) {
    const edited = await editor.edit(saleId, body, userId);
    switch (edited.outcome) {
      case 'done':
        return json(200, 'edited', saleBody(edited.sale));
      case 'wrong':
        return badFields(edited.errors);
      case 'wrong_state':
        return problem('wrong_state', { detail: `Cannot change a sale that is ${edited.sale.state}.` });
      case 'not_enough':
        return problem('units_not_free');
      case 'repairing':
        return problem('repairing');
      case 'busy':
        return problem('repairing', { detail: EARLIER_WAITS });
      case 'not_found':
        return problem('not_found');
      default:
        return assertNever(edited);
    }
  },
});

export const deleteSale = operatorRoute({
  method: 'delete',
  path: '/admin/v1/sales/{saleId}',
  operationId: 'deleteSale',
  summary: 'Deletes a draft.',
  access: 'admin',
  params: saleParams,
  answers: { 200: { description: 'the deleted draft', schema: endedSale } },
  problems: ['not_found', 'wrong_state'],
  handle: async ({ params, userId }, { editor }: SaleServices) =>
    endAnswer('delete', await editor.remove(params.saleId, userId)),
});

export const cancelSale = operatorRoute({
  method: 'post',
  path: '/admin/v1/sales/{saleId}/cancel',
  operationId: 'cancelSale',
  summary: 'Cancels a sale that has not begun: deletes a draft, closes any other sale.',
  access: 'admin',
  params: saleParams,
  answers: { 200: { description: 'the outcome', schema: endedSale } },
  problems: ['not_found', 'wrong_state'],
  handle: async ({ params, userId }, { editor }: SaleServices) =>
    endAnswer('cancel', await editor.cancel(params.saleId, userId)),
});

function endAnswer(verb: 'delete' | 'cancel', answer: SaleCancelled): Answer<200 | 'wrong_state' | 'not_found'> {
  switch (answer.outcome) {
    case 'deleted':
    case 'closed':
      return json(200, answer.outcome, { outcome: answer.outcome, sale: saleBody(answer.sale) });
    case 'wrong_state':
      return problem(answer.outcome, { detail: notEnded(verb, answer.sale.state) });
    case 'not_found':
      return problem(answer.outcome);
    default:
      return assertNever(answer);
  }
}

export const notEnded = (verb: 'delete' | 'cancel', state: string): string =>
  verb === 'delete' || state === 'closed'
    ? `Cannot ${verb} a sale that is ${state}.`
    : `Cannot cancel a sale that has begun (${state}). Close it instead.`;
