import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Sale, StoredRules, WaitingRoom } from '../api/types.js';
import { valueAt } from '../logic/diff.js';
import { may } from '../logic/permissions.js';
import { figureOf } from '../logic/sale-edit.js';
import { Button, Facts, Panel } from '../parts/basics.js';
import { Confirm } from '../parts/confirm.js';
import { TextField } from '../parts/fields.js';
import { Freshness, Shown } from '../parts/states.js';
import { useApp, useResource, useWords } from '../shell/hooks.js';

/** The maximum rate, and the maximum number of buyers admitted at once, that the API accepts. */
const RATE_MAX = 100_000;
const ADMIT_MAX = 1_000_000;

const ACTIONS = ['pause', 'resume', 'rate', 'admit', 'empty'] as const;
type Action = (typeof ACTIONS)[number];

/** Shows the waiting room of a sale, and lets operators steer it. */
export function WaitingRoomPanel({ sale }: { readonly sale: Sale }) {
  const { me } = useApp();
  const { t, f } = useWords();
  const rateText = useRateText();
  const [action, setAction] = useState<Action | null>(null);
  const read = useResource<WaitingRoom>(`/admin/v1/sales/${sale.saleId}/waiting-room`, { everyMs: 3_000 });
  const offered = ({ mode, admitPerSecond, waiting }: WaitingRoom): readonly Action[] => {
    if (mode === 'off' || !may(me.role, 'operator')) return [];
    const rate: readonly Action[] = admitPerSecond === 0 ? ['resume'] : ['pause', 'rate'];
    return waiting === 0 ? rate : [...rate, 'admit', 'empty'];
  };
  return (
    <Panel title={t.sale.queue} actions={<Freshness {...read} />}>
      <Shown of={read} rows={4}>
        {(room) =>
          room.mode === 'off' && room.waiting === 0 ? (
            <p>{t.sale.queueOff}</p>
          ) : (
            <>
              {room.mode === 'dry_run' && <p>{t.sale.queueDry}</p>}
              <Facts
                facts={[
                  [t.room.waiting, f.number(room.waiting)],
                  [t.room.admitted, f.number(room.admitted)],
                  [t.room.rate, rateText(room.admitPerSecond)],
                  [t.room.lastWaits, room.estimateMs === null ? t.room.untilResumed : f.duration(room.estimateMs)],
                ]}
              />
              <div class="actions">
                {offered(room).map((one) => (
                  <Button key={one} kind={one === 'empty' ? 'danger' : 'plain'} onClick={() => setAction(one)}>
                    {t.room.actions[one]}
                  </Button>
                ))}
              </div>
            </>
          )
        }
      </Shown>
      {action !== null && read.data !== null && (
        <RoomDialog action={action} sale={sale} room={read.data} onClose={() => setAction(null)} onDone={read.reload} />
      )}
    </Panel>
  );
}

/** Formats a rate with up to three decimals. */
function useRateText(): (perSecond: number) => string {
  const { t, f } = useWords();
  return (perSecond) => (perSecond === 0 ? t.room.paused : perSecond.toLocaleString(f.locale));
}

/** Confirms an action on a waiting room: shows its figures, and the figures after the action. */
function RoomDialog({
  action,
  sale: { saleId, title },
  room,
  onClose,
  onDone,
}: {
  readonly action: Action;
  readonly sale: Sale;
  readonly room: WaitingRoom;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const { api } = useApp();
  const { t, f } = useWords();
  const rateText = useRateText();
  // The rate before the pause, if the pause was the last change of the rules.
  const [version] = useState(room.version);
  const isResuming = action === 'resume' && version > 1;
  const { data } = useResource<StoredRules>(isResuming ? `/admin/v1/rules/history/${version - 1}` : null);
  const before = data === null ? 0 : Number(valueAt(data.rules, 'queue.admitPerSecond'));
  const [typed, setTyped] = useState<string | null>(null);
  const usual = action === 'admit' ? '' : String(room.admitPerSecond || before || '');
  const text = typed ?? usual;
  const figure = action === 'pause' ? 0 : figureOf(text);
  const admits = Math.min(figure, room.waiting);
  const isRate = action === 'pause' || action === 'resume' || action === 'rate';
  const isReadable =
    action === 'empty' ||
    (isRate
      ? figure >= (action === 'pause' ? 0 : Number.MIN_VALUE) && figure <= RATE_MAX
      : Number.isInteger(figure) && figure >= 1 && figure <= ADMIT_MAX);

  const run = async (): Promise<string> => {
    if (isRate) {
      const path = '/admin/v1/waiting-rooms/rate';
      const body = { admitPerSecond: figure };
      const { version: made, seenAtOnce } = await api.ask<{ version: number; seenAtOnce: boolean }>(path, {
        method: 'PUT',
        body,
      });
      return `${t.room.rateSet(f.number(made))} ${seenAtOnce ? '' : t.rules.notAtOnce}`.trim();
    }
    const { buyers } = await api.ask<{ buyers: number }>(`/admin/v1/sales/${saleId}/waiting-room`, {
      method: 'POST',
      body: action === 'admit' ? { action, buyers: figure } : { action },
    });
    return action === 'admit' ? t.room.wereAdmitted(f.number(buyers)) : t.room.wereEnded(f.number(buyers));
  };
  const becomes = (now: string, then: string): ComponentChildren => (
    <>
      {now} → <b>{isReadable ? then : '–'}</b>
    </>
  );
  const { waiting, admitted, admitPerSecond } = room;
  return (
    <Confirm
      title={`${t.room.actions[action]}: ${isRate ? t.room.all : title}`}
      text={t.room.does[action]}
      verb={t.room.actions[action]}
      isDangerous={action === 'empty'}
      {...(action === 'empty' && { typed: saleId })}
      canRun={isReadable && !(isRate && figure === admitPerSecond)}
      run={run}
      audit={{ subject: isRate ? 'rules:admission' : `sale:${saleId}` }}
      onClose={onClose}
      onDone={onDone}
    >
      {action !== 'pause' && action !== 'empty' && (
        <TextField
          label={isRate ? t.room.rate : t.room.buyers}
          type="number"
          value={text}
          onInput={setTyped}
          error={text !== '' && !isReadable ? (isRate ? t.room.badRate : t.room.badBuyers) : undefined}
        />
      )}
      <Facts
        facts={
          isRate
            ? [
                [t.room.rate, becomes(rateText(admitPerSecond), rateText(figure))],
                [t.room.waiting, f.number(waiting)],
              ]
            : [
                [t.room.waiting, becomes(f.number(waiting), f.number(action === 'empty' ? 0 : waiting - admits))],
                [t.room.admitted, becomes(f.number(admitted), f.number(action === 'empty' ? 0 : admitted + admits))],
              ]
        }
      />
    </Confirm>
  );
}
