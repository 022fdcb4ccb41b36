import type { OrderRefunds } from '../../core/ports/order-refunds.js';
import type { OrderSearch } from '../../core/ports/order-search.js';
import { createOrderRefunds } from '../../mysql/order-refunds.js';
import { createOrderSearch } from '../../mysql/order-search.js';
import type { Connections } from '../../process/connections.js';
import { systemClock as clock } from '../../process/system-clock.js';
import { createPaymentCaseStore, type PaymentCaseStore } from './payment-case-store.js';
import { createRefundStore, type RefundStore } from './refund-store.js';

export interface RefundServices {
  readonly refunds: RefundStore;
  readonly orderRefunds: OrderRefunds;
  readonly paymentCases: PaymentCaseStore;
  readonly currenciesOf: OrderSearch['currenciesOf'];
}

export function openRefunds(connections: Connections<'mysql' | 'redis'>): RefundServices {
  const mysql = connections.mysql();
  return {
    refunds: createRefundStore(mysql),
    orderRefunds: createOrderRefunds(mysql, { clock }),
    paymentCases: createPaymentCaseStore(mysql),
    currenciesOf: createOrderSearch(mysql).currenciesOf,
  };
}
