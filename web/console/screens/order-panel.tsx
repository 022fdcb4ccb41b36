import { useEffect, useState } from 'preact/hooks';
import type { FoundOrder, OrderRefund } from '../api/types.js';
import { newKey } from '../../client/buy.js';
import { inMainUnit } from '../../../src/core/currency.js';
import { actionsOnOrder, actionsOnRefund } from '../logic/permissions.js';
import { typedAmount } from '../logic/typed-amount.js';
import { Ago, Button, Cut, Facts, Id, Panel, Time } from '../parts/basics.js';
import { Confirm } from '../parts/confirm.js';
import { Check, Segments, TextField } from '../parts/fields.js';
import { Failure, Freshness, Note } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { PurchaseState } from '../parts/words.js';
import { useApp, useResource, useWords } from '../shell/hooks.js';
import { OrderCoupons } from './order-coupons.js';
import { RefundButtons, RefundDialog, RefundState, type PickedRefund } from './refund-actions.js';

const [REFUNDING_EVERY_MS, EVERY_MS] = [3_000, 15_000];

interface OrderProps {
  readonly order: FoundOrder;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Shows an order with its refunds, and cancels or refunds it. @param onDone called once the order has changed */
export function OrderPanel({ orderId, onDone }: { readonly orderId: string; readonly onDone: () => void }) {
  const { me } = useApp();
  const { t, f } = useWords();
  const path = `/admin/v1/orders/${orderId}`;
  const [everyMs, setEveryMs] = useState(EVERY_MS);
  const order = useResource<FoundOrder>(path, { everyMs });
  const refunds = useResource<{ refunds: readonly OrderRefund[] }>(
    order.data === null || order.data.paidAt === null ? null : `${path}/refunds`,
    { everyMs },
  );
  const [asked, setAsked] = useState<'cancel' | 'refund' | null>(null);
  const [picked, setPicked] = useState<PickedRefund | null>(null);
  const state = order.data?.state;
  useEffect(() => setEveryMs(state === 'refunding' ? REFUNDING_EVERY_MS : EVERY_MS), [state]);
  const done = (): void => {
    order.reload();
    refunds.reload();
    onDone();
  };
  if (order.data === null) {
    if (order.error === null || order.error.status === 404) return null;
    return (
      <Panel title={t.common.order}>
        <Failure error={order.error} onRetry={order.reload} />
      </Panel>
    );
  }
  const { data } = order;
  const { currency, amountCents, refundedCents } = data;
  const columns: readonly Column<OrderRefund>[] = [
    { name: t.common.state, width: '96px', cell: (refund) => <RefundState state={refund.state} /> },
    {
      name: t.refunds.amount,
      isNumber: true,
      width: '100px',
      phoneWidth: '84px',
      cell: (refund) => f.money(refund.amountCents, currency),
    },
    { name: t.refunds.created, hides: 'phone', width: '96px', cell: ({ createdAt }) => <Ago at={createdAt} /> },
    { name: t.refunds.payment, hides: 'narrow', cell: ({ paymentId }) => <Id text={paymentId} /> },
    { name: t.refunds.reasons, hides: 'narrow', cell: ({ reason }) => <Cut text={reason} /> },
    { name: t.refunds.lastError, hides: 'phone', cell: ({ lastError }) => <Cut text={lastError} lang="en" /> },
    {
      name: t.common.action,
      width: '220px',
      phoneWidth: '140px',
      cell: (refund) => <RefundButtons refund={{ ...refund, currency }} onPick={setPicked} />,
    },
  ];
  const rows = refunds.data?.refunds ?? [];
  const isFailed = rows.some((refund) => refund.state === 'failed' && actionsOnRefund(refund, 'admin').length > 0);
  return (
    <>
      <Panel
        title={t.common.order}
        actions={
          <>
            {actionsOnOrder(data, me.role).map((action) => (
              <Button key={action} kind="danger" onClick={() => setAsked(action)}>
                {t.till[action]}
              </Button>
            ))}
            <Freshness {...order} />
          </>
        }
      >
        {isFailed && <Note tone="warn">{t.till.failedText}</Note>}
        <Facts
          facts={[
            [t.common.state, <PurchaseState state={data.state} />],
            [t.purchases.amount, f.money(amountCents, currency)],
            ...(refundedCents === 0 ? [] : [[t.till.refunded, f.money(refundedCents, currency)] as const]),
            [t.purchases.quantity, f.number(data.quantity)],
            [t.till.paidAt, <Time at={data.paidAt} />],
            [t.refunds.payment, <Id text={data.paymentId} />],
          ]}
        />
      </Panel>
      {(rows.length > 0 || refunds.error !== null) && (
        <Panel title={t.till.refunds} flush actions={<Freshness {...refunds} />}>
          <Table
            label={t.till.refunds}
            columns={columns}
            rows={rows}
            keyOf={({ refundId }) => refundId}
            error={refunds.error}
            onRetry={refunds.reload}
          />
        </Panel>
      )}
      <OrderCoupons orderId={data.orderId} everyMs={everyMs} />
      {asked === 'cancel' && <CancelDialog order={data} onClose={() => setAsked(null)} onDone={done} />}
      {asked === 'refund' && <OrderRefundDialog order={data} onClose={() => setAsked(null)} onDone={done} />}
      {picked && <RefundDialog picked={picked} onClose={() => setPicked(null)} onDone={done} />}
    </>
  );
}

/** The amount of an order in a list, and how much of it was refunded. */
export function OrderAmount({ order: { amountCents, refundedCents, currency } }: { readonly order: FoundOrder }) {
  const { t, f } = useWords();
  return (
    <div class="two-lines">
      {f.money(amountCents, currency)}
      {refundedCents > 0 && <small title={t.till.refunded}>−{f.money(refundedCents, currency)}</small>}
    </div>
  );
}

function OrderFacts({ order }: { readonly order: FoundOrder }) {
  const { t, f } = useWords();
  return (
    <Facts
      facts={[
        [t.common.order, <Id text={order.orderId} />],
        [t.common.user, <Id text={order.userId} />],
        [t.sales.fields.title, order.title],
        [t.purchases.quantity, f.number(order.quantity)],
        [t.purchases.amount, f.money(order.amountCents, order.currency)],
        ...(order.refundedCents === 0
          ? []
          : [[t.till.refunded, f.money(order.refundedCents, order.currency)] as const]),
      ]}
    />
  );
}

function CancelDialog({ order, onClose, onDone }: OrderProps) {
  const { api } = useApp();
  const { t } = useWords();
  const [reason, setReason] = useState('');
  const run = async (): Promise<string> => {
    await api.ask(`/admin/v1/orders/${order.orderId}/cancel`, { method: 'POST', body: { reason } });
    return t.till.cancelled;
  };
  return (
    <Confirm
      title={t.till.cancel}
      text={t.till.cancelText}
      verb={t.till.cancel}
      isDangerous
      canRun={reason.trim() !== ''}
      run={run}
      audit={{ subject: `order:${order.orderId}` }}
      onClose={onClose}
      onDone={onDone}
    >
      <TextField label={t.common.reason} value={reason} onInput={setReason} hint={t.till.reasonHint} />
      <OrderFacts order={order} />
    </Confirm>
  );
}

function OrderRefundDialog({ order: newest, onClose, onDone }: OrderProps) {
  const [order] = useState(newest); // the user decides on the basis of this state
  const [key] = useState(newKey); // a repeat after a lost answer is the same refund
  const { api } = useApp();
  const { t, f } = useWords();
  const [how, setHow] = useState<'whole' | 'part'>('whole');
  const [typed, setTyped] = useState('');
  const [restock, setRestock] = useState(false);
  const [reason, setReason] = useState('');
  const { orderId, currency } = order;
  const leftCents = order.amountCents - order.refundedCents;
  const partCents = typedAmount(typed, currency, leftCents);
  const amountCents = how === 'whole' ? leftCents : partCents;
  const run = async (): Promise<string> => {
    const body = { restock, reason, ...(how === 'part' && { amountCents: partCents }) };
    const { outcome } = await api.ask<{ outcome: 'refunding' | 'refunded' }>(`/admin/v1/orders/${orderId}/refunds`, {
      ...{ method: 'POST', body, key },
    });
    return t.till.done[outcome];
  };
  return (
    <Confirm
      title={t.till.refundTitle}
      text={t.till.refundText}
      verb={amountCents === null ? t.till.refund : t.till.refundSum(f.money(amountCents, currency))}
      isDangerous
      canRun={amountCents !== null && reason.trim() !== ''}
      run={run}
      audit={{ subject: `order:${orderId}` }}
      onClose={onClose}
      onDone={onDone}
    >
      <Segments
        label={t.refunds.amount}
        value={how}
        options={[
          ['whole', t.till.whole(f.money(leftCents, currency))],
          ['part', t.till.part],
        ]}
        onPick={setHow}
      />
      {how === 'part' && (
        <TextField
          label={`${t.refunds.amount} (${currency})`}
          type="number"
          value={typed}
          onInput={setTyped}
          error={
            typed === '' || partCents !== null
              ? undefined
              : t.till.badAmount(String(inMainUnit(1, currency)), String(inMainUnit(leftCents, currency)))
          }
        />
      )}
      <Check label={t.till.restock} hint={t.till.restockHint} checked={restock} onChange={setRestock} />
      <TextField label={t.common.reason} value={reason} onInput={setReason} hint={t.till.reasonHint} />
      <OrderFacts order={order} />
    </Confirm>
  );
}
