import { useState } from 'preact/hooks';
import { REFUND_STATES, type ListedRefund } from '../api/types.js';
import { may } from '../logic/permissions.js';
import { pathOf } from '../logic/routes.js';
import { Ago, Cut, Id, Panel, ScreenHead } from '../parts/basics.js';
import { choice, FilterBar } from '../parts/fields.js';
import { Empty, Freshness } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { PaymentCases } from './payment-cases.js';
import { RefundButtons, RefundDialog, RefundState, type PickedRefund } from './refund-actions.js';
import { useApp, useFilter, usePages, useWords } from '../shell/hooks.js';

/** Shows money that is owed to buyers, and refunds that operators ordered. */
export function RefundsScreen() {
  const { me } = useApp();
  const { t, f } = useWords();
  const [filter, setFilter] = useFilter(['state', 'sale'] as const);
  const refunds = usePages<ListedRefund>('/admin/v1/refunds', filter, { rows: 'refunds', place: 'after' });
  const [picked, setPicked] = useState<PickedRefund | null>(null);
  const columns: readonly Column<ListedRefund>[] = [
    { name: t.refunds.payment, cell: ({ paymentId }) => <Id text={paymentId} /> },
    {
      name: t.common.state,
      width: '90px',
      ...(may(me.role, 'admin') && { hides: 'phone' as const }), // the button shows it
      sort: ({ state }) => state,
      cell: ({ state }) => <RefundState state={state} />,
    },
    {
      name: t.refunds.amount,
      isNumber: true,
      width: '100px',
      phoneWidth: '84px',
      sort: ({ amountCents }) => amountCents,
      cell: ({ amountCents, currency }) => f.money(amountCents, currency),
    },
    {
      name: t.common.order,
      hides: 'phone',
      width: '140px',
      cell: ({ orderId }) => <Id text={orderId} to={pathOf({ screen: 'purchases', id: orderId })} />,
    },
    {
      name: t.refunds.reasons,
      hides: 'phone',
      width: '110px',
      sort: ({ reason }) => reason,
      cell: ({ reason }) => <Cut text={reason} />,
    },
    {
      name: t.refunds.lastError,
      hides: 'narrow',
      width: '16%',
      cell: ({ lastError }) => <Cut text={lastError} lang="en" />,
    },
    {
      name: t.refunds.created,
      hides: 'phone',
      width: '100px',
      sort: ({ createdAt }) => createdAt,
      cell: ({ createdAt }) => <Ago at={createdAt} />,
    },
    ...(may(me.role, 'admin')
      ? [
          {
            name: t.common.action,
            width: '200px',
            phoneWidth: '140px',
            cell: (refund: ListedRefund) => <RefundButtons refund={refund} onPick={setPicked} />,
          },
        ]
      : []),
  ];
  return (
    <>
      <ScreenHead title={t.refunds.title} under={t.refunds.manyDue} />
      <PaymentCases />
      <Panel flush>
        <FilterBar
          fields={[
            choice('state', t.common.state, REFUND_STATES, t.refunds.states),
            { name: 'sale', label: t.reconcile.saleId, kind: 'text' },
          ]}
          values={filter}
          onChange={setFilter}
        >
          <Freshness {...refunds} />
        </FilterBar>
        <Table
          label={t.refunds.title}
          columns={columns}
          {...refunds.list}
          keyOf={({ paymentId, refundId }) => refundId ?? paymentId}
          empty={<Empty title={t.refunds.empty} text={t.refunds.emptyText} />}
        />
      </Panel>
      {picked && <RefundDialog picked={picked} onClose={() => setPicked(null)} onDone={refunds.reload} />}
    </>
  );
}
