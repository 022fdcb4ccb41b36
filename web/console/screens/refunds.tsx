import { useState } from 'preact/hooks';
import { REFUND_STATES, type ListedRefund } from '../api/types.js';
import { may } from '../logic/permissions.js';
import { pathOf } from '../logic/routes.js';
import { Ago, Badge, Button, Cut, Facts, Id, Panel, ScreenHead, Time } from '../parts/basics.js';
import { Confirm } from '../parts/confirm.js';
import { FilterBar } from '../parts/fields.js';
import { Empty, Freshness } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { PaymentCases } from './payment-cases.js';
import { useApp, useFilter, usePages, useWords } from '../shell/hooks.js';

/** Shows money that is owed to buyers. */
export function RefundsScreen() {
  const { api, me } = useApp();
  const { t, f } = useWords();
  const [filter, setFilter] = useFilter(['state'] as const);
  const refunds = usePages<ListedRefund, { refunds: readonly ListedRefund[]; next: string | null }>(
    '/admin/v1/refunds',
    filter,
    {
      place: 'after',
      read: (page) => ({ rows: page.refunds, next: page.next }),
    },
  );
  const [picked, setPicked] = useState<ListedRefund | null>(null);
  const columns: readonly Column<ListedRefund>[] = [
    { name: t.refunds.payment, cell: ({ paymentId }) => <Id text={paymentId} /> },
    {
      name: t.common.state,
      width: '90px',
      ...(may(me.role, 'admin') && { hides: 'phone' as const }), // the button shows it
      sort: ({ state }) => state,
      cell: ({ state }) => <Badge tone={state === 'due' ? 'warn' : 'ok'}>{t.refunds.states[state]}</Badge>,
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
      width: '160px',
      cell: ({ orderId }) => <Id text={orderId} to={pathOf({ screen: 'purchases', id: orderId })} />,
    },
    {
      name: t.refunds.reasons,
      hides: 'phone',
      width: '120px',
      sort: ({ reason }) => reason,
      cell: ({ reason }) => <Cut text={reason} />,
    },
    {
      name: t.common.attempts,
      isNumber: true,
      hides: 'narrow',
      width: '84px',
      sort: ({ attempts }) => attempts,
      cell: ({ attempts }) => f.number(attempts),
    },
    {
      name: t.refunds.lastError,
      hides: 'narrow',
      width: '18%',
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
            width: '124px',
            phoneWidth: '112px',
            cell: (refund: ListedRefund) =>
              refund.state === 'due' && <Button onClick={() => setPicked(refund)}>{t.refunds.takeOn}</Button>,
          },
        ]
      : []),
  ];
  const takeOn = async ({ paymentId }: ListedRefund): Promise<string> => {
    await api.ask(`/admin/v1/refunds/${encodeURIComponent(paymentId)}/done`, { method: 'POST' });
    return t.refunds.taken;
  };
  return (
    <>
      <ScreenHead title={t.refunds.title} under={t.refunds.manyDue} />
      <PaymentCases />
      <Panel flush>
        <FilterBar
          fields={[
            {
              name: 'state',
              label: t.common.state,
              kind: 'choice',
              options: REFUND_STATES.map((one) => [one, t.refunds.states[one]] as const),
            },
          ]}
          values={filter}
          onChange={setFilter}
        >
          <Freshness {...refunds} />
        </FilterBar>
        <Table
          label={t.refunds.title}
          columns={columns}
          rows={refunds.rows}
          keyOf={({ paymentId }) => paymentId}
          empty={<Empty title={t.refunds.empty} text={t.refunds.emptyText} />}
          error={refunds.error}
          isLoading={refunds.isLoading}
          onRetry={refunds.reload}
          hasMore={refunds.hasMore}
          onMore={refunds.more}
        />
      </Panel>
      {picked && (
        <Confirm
          title={t.refunds.takeOnTitle}
          text={t.refunds.takeOnText}
          verb={t.refunds.takeOn}
          isDangerous
          run={() => takeOn(picked)}
          audit={{ subject: `refund:${picked.paymentId}` }}
          onClose={() => setPicked(null)}
          onDone={refunds.reload}
        >
          <Facts
            facts={[
              [t.refunds.payment, <Id text={picked.paymentId} />],
              [t.refunds.amount, <b>{f.money(picked.amountCents, picked.currency)}</b>],
              [t.common.order, <Id text={picked.orderId} />],
              [t.refunds.reasons, picked.reason],
              [t.common.attempts, f.number(picked.attempts)],
              [t.refunds.lastError, picked.lastError === null ? '–' : <span lang="en">{picked.lastError}</span>],
              [t.refunds.created, <Time at={picked.createdAt} />],
            ]}
          />
        </Confirm>
      )}
    </>
  );
}
