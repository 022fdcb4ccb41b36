import { useState } from 'preact/hooks';
import type { Webhook, WebhookDelivery, WebhookTest } from '../api/types.js';
import { may } from '../logic/permissions.js';
import { pathOf } from '../logic/routes.js';
import { Ago, Badge, Button, Cut, Facts, Id, Panel } from '../parts/basics.js';
import { Confirm } from '../parts/confirm.js';
import { Empty, Freshness, Shown } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { useApp, usePages, useResource, useWords } from '../shell/hooks.js';

const TONES = { active: 'ok', paused: 'idle', failed: 'bad' } as const;
const ACTIONS = ['test', 'pause', 'resume'] as const;
type Action = (typeof ACTIONS)[number];

/** Shows the endpoints that get order events, and the events that one of them did not take. */
export function Webhooks() {
  const { api, me } = useApp();
  const { t } = useWords();
  const all = useResource<{ readonly webhooks: readonly Webhook[] }>('/admin/v1/webhooks', { everyMs: 5_000 });
  const [picked, setPicked] = useState<{ readonly webhook: Webhook; readonly action: Action } | null>(null);
  const [opened, setOpened] = useState<string | null>(null);
  const actionsOn = ({ state }: Webhook): Action[] =>
    ACTIONS.filter((action) =>
      action === 'test'
        ? may(me.role, 'operator')
        : may(me.role, 'admin') && (action === 'pause') === (state === 'active'),
    );
  const act = async (webhook: Webhook, action: Action): Promise<string> => {
    const path = `/admin/v1/webhooks/${webhook.endpointId}`;
    if (action === 'test') {
      const { outcome, detail } = await api.ask<WebhookTest>(`${path}/test`, { method: 'POST' });
      return t.webhooks.tested[outcome](detail);
    }
    await api.ask(path, { method: 'PATCH', body: { state: action === 'pause' ? 'paused' : 'active' } });
    return t.webhooks.said[action];
  };
  const columns: readonly Column<Webhook>[] = [
    { name: t.webhooks.url, cell: ({ url }) => <Cut text={url} /> },
    {
      name: t.common.state,
      width: '100px',
      cell: ({ state }) => <Badge tone={TONES[state]}>{t.webhooks.states[state]}</Badge>,
    },
    {
      name: t.webhooks.failing,
      hides: 'phone',
      width: '110px',
      cell: ({ failingSince }) => (failingSince === null ? '–' : <Ago at={failingSince} />),
    },
    {
      name: t.webhooks.lastError,
      hides: 'phone',
      width: '20%',
      cell: ({ lastError }) => <Cut text={lastError} lang="en" />,
    },
    {
      name: t.common.action,
      width: '180px',
      phoneWidth: '140px',
      cell: (webhook) => (
        <span class="inline">
          {actionsOn(webhook).map((action) => (
            <Button key={action} onClick={() => setPicked({ webhook, action })}>
              {t.webhooks.verb[action]}
            </Button>
          ))}
        </span>
      ),
    },
  ];
  return (
    <>
      <Panel title={t.webhooks.title} hint={t.webhooks.hint} flush actions={<Freshness {...all} />}>
        <Shown of={all}>
          {({ webhooks }) => (
            <Table
              label={t.webhooks.title}
              columns={columns}
              rows={webhooks}
              keyOf={({ endpointId }) => endpointId}
              nameOf={({ url }) => url}
              onOpen={({ endpointId }) => setOpened(endpointId === opened ? null : endpointId)}
              isOpen={({ endpointId }) => endpointId === opened}
              empty={<Empty title={t.webhooks.empty} text={t.webhooks.emptyText} />}
            />
          )}
        </Shown>
      </Panel>
      {opened !== null && <Undelivered key={opened} endpointId={opened} />}
      {picked && (
        <Confirm
          title={t.webhooks.verb[picked.action]}
          text={t.webhooks.asks[picked.action]}
          verb={t.webhooks.verb[picked.action]}
          run={() => act(picked.webhook, picked.action)}
          audit={{ subject: `webhook:${picked.webhook.endpointId}` }}
          onClose={() => setPicked(null)}
          onDone={all.reload}
        >
          <Facts
            facts={[
              [t.webhooks.url, <Cut text={picked.webhook.url} />],
              [t.webhooks.events, picked.webhook.events.join(', ')],
            ]}
          />
        </Confirm>
      )}
    </>
  );
}

/** Shows the newest events of an endpoint, and sends one again. */
function Undelivered({ endpointId }: { readonly endpointId: string }) {
  const { api, me } = useApp();
  const { t, f } = useWords();
  const path = `/admin/v1/webhooks/${endpointId}`;
  const events = usePages<WebhookDelivery>(`${path}/deliveries`, {}, { rows: 'deliveries', place: 'before' });
  const [picked, setPicked] = useState<WebhookDelivery | null>(null);
  const columns: readonly Column<WebhookDelivery>[] = [
    { name: t.webhooks.event, cell: ({ type }) => <Cut text={type} /> },
    {
      name: t.common.order,
      hides: 'phone',
      width: '170px',
      cell: ({ orderId }) => <Id text={orderId} to={pathOf({ screen: 'purchases', id: orderId })} />,
    },
    { name: t.common.state, width: '100px', cell: ({ state }) => t.webhooks.deliveryStates[state] },
    {
      name: t.common.attempts,
      hides: 'phone',
      isNumber: true,
      width: '90px',
      cell: ({ attempts }) => f.number(attempts),
    },
    {
      name: t.webhooks.lastError,
      hides: 'narrow',
      width: '20%',
      cell: ({ lastError }) => <Cut text={lastError} lang="en" />,
    },
    { name: t.webhooks.happened, hides: 'phone', width: '100px', cell: ({ at }) => <Ago at={at} /> },
    ...(may(me.role, 'operator')
      ? [
          {
            name: t.common.action,
            width: '120px',
            cell: (one: WebhookDelivery) => <Button onClick={() => setPicked(one)}>{t.webhooks.resend}</Button>,
          },
        ]
      : []),
  ];
  const resend = async ({ deliveryId }: WebhookDelivery): Promise<string> => {
    await api.ask(`${path}/resend`, { method: 'POST', body: { deliveryIds: [deliveryId] } });
    return t.webhooks.resent;
  };
  return (
    <Panel title={t.webhooks.deliveries} flush actions={<Freshness {...events} />}>
      <Table
        label={t.webhooks.deliveries}
        columns={columns}
        rows={events.rows}
        keyOf={({ deliveryId }) => deliveryId}
        empty={<Empty title={t.webhooks.noDeliveries} />}
        error={events.error}
        isLoading={events.isLoading}
        onRetry={events.reload}
        hasMore={events.hasMore}
        onMore={events.more}
      />
      {picked && (
        <Confirm
          title={t.webhooks.resend}
          text={t.webhooks.resendText}
          verb={t.webhooks.resend}
          run={() => resend(picked)}
          audit={{ subject: `webhook:${endpointId}` }}
          onClose={() => setPicked(null)}
          onDone={events.reload}
        />
      )}
    </Panel>
  );
}
