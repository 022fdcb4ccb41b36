import type { OrderSearch } from '../../core/ports/order-search.js';
import { createOrderSearch } from '../../mysql/order-search.js';
import type { Connections } from '../../process/connections.js';
import { createPaymentCaseStore, type PaymentCaseStore } from './payment-case-store.js';
import { createRefundStore, type RefundStore } from './refund-store.js';

/** The services that the routes and commands of refunds and payment cases need. */
export interface RefundServices {
  readonly refunds: RefundStore;
  readonly paymentCases: PaymentCaseStore;
  readonly currenciesOf: OrderSearch['currenciesOf'];
}

export function openRefunds(connections: Connections<'mysql'>): RefundServices {
  const mysql = connections.mysql();
  return {
    refunds: createRefundStore(mysql),
    paymentCases: createPaymentCaseStore(mysql),
    currenciesOf: createOrderSearch(mysql).currenciesOf,
  };
}
