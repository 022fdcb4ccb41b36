import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from '../api/api-error.js';
import {
  LEVELS,
  type FieldError,
  type JsonObject,
  type RuleChange,
  type RulesStatus,
  type StoredRules,
  type Switch,
  type Switches,
} from '../api/types.js';
import { changesOf } from '../logic/diff.js';
import { may } from '../logic/permissions.js';
import { pathOf, RULE_TABS } from '../logic/routes.js';
import { ruleFault, ruleTitle } from '../logic/rule-fields.js';
import { Store } from '../logic/store.js';
import { Badge, Button, Cut, Facts, Id, Panel, ScreenHead, Tabs, Time } from '../parts/basics.js';
import { Confirm } from '../parts/confirm.js';
import { Choice, TextArea, TextField } from '../parts/fields.js';
import { Empty, Failure, Freshness, Loading, Note, ProblemText, Shown } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { Diff } from '../parts/values.js';
import { navigate, readAgain, useApp, useResource, useStore, useWords, type Resource } from '../shell/hooks.js';
import { RulesInForce } from './health.js';
import { RulesForm } from './rules-form.js';

type Tab = (typeof RULE_TABS)[number];

/** Rules that the user edits, and the version on which they are based. */
interface Draft {
  readonly rules: JsonObject;
  readonly from: number;
}

/** Kept while the user looks at other screens, whatever other users publish. Null if there is no draft. */
export const draftOfRules = new Store<Draft | null>(null);
const setDraft = (draft: Draft | null): void => draftOfRules.set(draft);

/** Shows the rules of admission: the current rules, a draft beside them, and how to publish it. */
export function RulesScreen({ tab }: { readonly tab: Tab }) {
  const { t, f } = useWords();
  const stored = useResource<StoredRules>('/admin/v1/rules', { everyMs: 10_000 });
  const status = useResource<RulesStatus>('/admin/v1/rules/status', { everyMs: 3_000 });
  const draft = useStore(draftOfRules);
  const inForce = stored.data;
  const isChanged = draft !== null && inForce !== null && changesOf(inForce.rules, draft.rules).length > 0;
  return (
    <>
      <ScreenHead
        title={t.rules.title}
        badge={inForce && <Badge tone="idle">{t.rules.version(f.number(inForce.version))}</Badge>}
        under={inForce?.version === 0 ? t.rules.noVersion : undefined}
        actions={<Freshness {...stored} />}
      />
      <Tabs
        label={t.rules.title}
        tabs={RULE_TABS.map((one) => ({
          to: pathOf({ screen: 'rules', tab: one }),
          text: t.rules.tabs[one],
          current: one === tab,
        }))}
      />
      {(tab === 'form' || tab === 'json') &&
        (inForce === null ? (
          <Panel>
            {stored.error === null ? <Loading rows={12} /> : <Failure error={stored.error} onRetry={stored.reload} />}
          </Panel>
        ) : (
          <Editor
            tab={tab}
            inForce={inForce}
            rules={draft?.rules ?? inForce.rules}
            from={draft?.from ?? inForce.version}
            isChanged={isChanged}
            onChange={(rules) => setDraft({ rules, from: draft?.from ?? inForce.version })}
            onDiscard={() => setDraft(null)}
            onRead={(version) => draft !== null && setDraft({ ...draft, from: version })}
            onPublished={() => {
              setDraft(null);
              stored.reload();
              status.reload();
            }}
          />
        ))}
      {tab === 'switches' && <SwitchesPanel />}
      {tab === 'versions' && (
        <Versions
          current={inForce}
          onLoad={(rules, version) => {
            setDraft({ rules, from: version });
            navigate(pathOf({ screen: 'rules', tab: 'form' }));
          }}
        />
      )}
      {tab === 'in-force' && <InForce status={status} />}
    </>
  );
}

interface EditorProps {
  readonly tab: 'form' | 'json';
  readonly inForce: StoredRules;
  readonly rules: JsonObject;
  /** The version on which the draft is based. */
  readonly from: number;
  readonly isChanged: boolean;
  readonly onChange: (rules: JsonObject) => void;
  readonly onDiscard: () => void;
  /** Called when the user has seen the newer version and continues from it. */
  readonly onRead: (version: number) => void;
  readonly onPublished: () => void;
}

type Checked = { readonly valid: boolean; readonly errors: readonly FieldError[] };
/** The API checks a draft once nothing was typed for this time. */
const CHECK_AFTER_MS = 600;

function Editor({ tab, inForce, rules, from, isChanged, onChange, onDiscard, onRead, onPublished }: EditorProps) {
  const { api, me } = useApp();
  const { t, f } = useWords();
  const [isAsked, setAsked] = useState(false);
  const [isJsonBad, setJsonBad] = useState(false);
  const checked = useCheck(rules, isChanged);
  const nameOf = (path: string): string => ruleTitle(path, t.rules);
  const changes = changesOf(inForce.rules, rules).length;
  const isAdmin = may(me.role, 'admin');
  const isBehind = from !== inForce.version;
  const publish = async (): Promise<string> => {
    const answer = await api.ask<{ version: number; seenAtOnce: boolean }>('/admin/v1/rules', {
      method: 'PUT',
      body: { version: from, rules },
    });
    return `${t.rules.published(f.number(answer.version))} ${answer.seenAtOnce ? '' : t.rules.notAtOnce}`.trim();
  };
  const errors = checked.data?.errors ?? [];
  return (
    <>
      <div class="draft-bar" role="status">
        <b>{isChanged ? t.rules.changed(f.number(changes)) : t.rules.noChange}</b>
        {isChanged && checked.data === null && checked.error === null && <span class="faint">{t.rules.checking}</span>}
        {isChanged && checked.data?.valid && <Badge tone="ok">{t.rules.valid}</Badge>}
        {isChanged && errors.length > 0 && <Badge tone="bad">{t.rules.invalid(f.number(errors.length))}</Badge>}
        <span class="gap" />
        {isChanged && (
          <Button kind="quiet" onClick={onDiscard}>
            {t.rules.discardDraft}
          </Button>
        )}
        {isAdmin && (
          <Button
            kind="main"
            disabled={!isChanged || isJsonBad || checked.data?.valid !== true || isBehind}
            onClick={() => setAsked(true)}
          >
            {t.rules.publish}
          </Button>
        )}
      </div>
      {!isAdmin && <Note tone="info">{t.rules.onlyAdmin}</Note>}
      {isBehind && (
        <Note tone="warn">
          {t.rules.conflict}{' '}
          <Button onClick={() => onRead(inForce.version)}>{t.rules.goOn(f.number(inForce.version))}</Button>
        </Note>
      )}
      {checked.error && (
        <Note tone="bad">
          <ProblemText error={checked.error} />
        </Note>
      )}
      {errors.length > 0 && (
        <Note tone="bad">
          <ul lang="en">
            {errors.map((error) => {
              const { name, fault } = ruleFault(error, t.rules);
              return (
                <li key={error.field + error.message} title={error.field}>
                  <b>{name}</b>: {fault}
                </li>
              );
            })}
          </ul>
        </Note>
      )}
      {tab === 'form' ? (
        <RulesForm before={inForce.rules} rules={rules} errors={errors} onChange={onChange} />
      ) : (
        <JsonEditor rules={rules} onChange={onChange} onBad={setJsonBad} />
      )}
      {isChanged && (
        <Panel title={t.rules.changed(f.number(changes))} flush>
          <Diff before={inForce.rules} after={rules} nameOf={nameOf} />
        </Panel>
      )}
      {isAsked && (
        <Confirm
          title={t.rules.publishTitle}
          text={t.rules.publishText(f.number(from))}
          verb={t.rules.publish}
          isDangerous
          run={publish}
          audit={{ subject: 'rules:admission' }}
          onClose={() => setAsked(false)}
          onDone={onPublished}
        >
          <Diff before={inForce.rules} after={rules} nameOf={nameOf} />
          <p class="hint">{t.rules.dryRunHint}</p>
        </Confirm>
      )}
    </>
  );
}

/** Asks the API to check a draft. Sends nothing while the draft equals the current rules. */
function useCheck(
  rules: JsonObject,
  isChanged: boolean,
): { readonly data: Checked | null; readonly error: ApiError | null } {
  const { api } = useApp();
  const again = useStore(readAgain);
  const [state, setState] = useState<{ readonly data: Checked | null; readonly error: ApiError | null }>({
    data: null,
    error: null,
  });
  useEffect(() => {
    setState({ data: null, error: null });
    if (!isChanged) return undefined;
    const ending = new AbortController();
    const timer = setTimeout(() => {
      api
        .ask<Checked>('/admin/v1/rules/check', { method: 'POST', body: { rules }, signal: ending.signal })
        .then((data) => setState({ data, error: null }))
        .catch((error: unknown) => {
          if (!ending.signal.aborted && error instanceof ApiError) setState({ data: null, error });
        });
    }, CHECK_AFTER_MS);
    return () => {
      clearTimeout(timer);
      ending.abort();
    };
  }, [rules, isChanged, api, again]);
  return state;
}

function JsonEditor({
  rules,
  onChange,
  onBad,
}: {
  readonly rules: JsonObject;
  readonly onChange: (rules: JsonObject) => void;
  readonly onBad: (isBad: boolean) => void;
}) {
  const { t } = useWords();
  useEffect(() => () => onBad(false), []); // text that is not JSON is lost, but the draft stays
  const written = useRef(rules);
  const [text, setText] = useState(() => JSON.stringify(rules, null, 2));
  const [fault, setFault] = useState<string | null>(null);
  useEffect(() => {
    if (rules === written.current) return;
    written.current = rules; // changed elsewhere: the draft was discarded, or replaced
    setText(JSON.stringify(rules, null, 2));
    setFault(null);
    onBad(false);
  }, [rules]);
  const input = (typed: string): void => {
    setText(typed);
    try {
      const read = JSON.parse(typed) as JsonObject;
      written.current = read;
      setFault(null);
      onBad(false);
      onChange(read);
    } catch (error) {
      setFault(t.rules.badJson(error instanceof Error ? error.message : ''));
      onBad(true);
    }
  };
  return (
    <Panel>
      <TextArea
        label={t.rules.tabs.json}
        value={text}
        onInput={input}
        rows={32}
        error={fault ?? undefined}
        hint={t.rules.dryRunHint}
      />
    </Panel>
  );
}

function SwitchesPanel() {
  const { me } = useApp();
  const { t, f } = useWords();
  const switches = useResource<Switches>('/admin/v1/switches', { everyMs: 5_000 });
  const [picked, setPicked] = useState<Switch | null>(null);
  const columns: readonly Column<Switch>[] = [
    { name: t.rules.tabs.switches, cell: ({ endpoint }) => <b>{t.rules.endpoints[endpoint]}</b> },
    {
      name: t.common.state,
      cell: ({ level }) => (
        <Badge tone={level === 'L0' ? 'ok' : level === 'L4' ? 'bad' : 'warn'}>{t.rules.levels[level]}</Badge>
      ),
    },
    {
      name: t.rules.percent,
      isNumber: true,
      width: '130px',
      phoneWidth: '64px',
      cell: ({ percent }) => f.percent(percent / 100),
    },
    {
      name: t.rules.tabs['in-force'],
      hides: 'phone',
      cell: ({ inForce }) => (inForce ? t.rules.inForce : <span class="faint">{t.rules.notInForce}</span>),
    },
    ...(may(me.role, 'operator')
      ? [
          {
            name: t.common.action,
            width: '100px',
            phoneWidth: '72px',
            cell: (one: Switch) => <Button onClick={() => setPicked(one)}>{t.rules.set}</Button>,
          },
        ]
      : []),
  ];
  return (
    <Panel title={t.rules.tabs.switches} hint={t.rules.switchesHint} flush actions={<Freshness {...switches} />}>
      {switches.data === null && switches.error?.code === 'rules_unfit' ? (
        <Empty title={t.rules.unfit} icon="warn" />
      ) : (
        <Shown of={switches}>
          {(data) => (
            <Table
              label={t.rules.tabs.switches}
              columns={columns}
              rows={data.switches}
              keyOf={({ endpoint }) => endpoint}
            />
          )}
        </Shown>
      )}
      {picked && <SwitchDialog before={picked} onClose={() => setPicked(null)} onDone={switches.reload} />}
    </Panel>
  );
}

function SwitchDialog({
  before,
  onClose,
  onDone,
}: {
  readonly before: Switch;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const { api } = useApp();
  const { t, f } = useWords();
  const [level, setLevel] = useState<Switch['level']>(before.level);
  const [percent, setPercent] = useState(String(before.percent));
  // A purchase is either accepted or refused; it has no levels in between.
  const levels = before.endpoint === 'purchase' ? (['L0', 'L4'] as const) : LEVELS;
  const share = Number(percent);
  const isChanged = level !== before.level || share !== before.percent;
  const run = async (): Promise<string> => {
    const answer = await api.ask<{ version: number; seenAtOnce: boolean }>(`/admin/v1/switches/${before.endpoint}`, {
      method: 'PUT',
      body: { level, percent: share },
    });
    return `${t.rules.switched(f.number(answer.version))} ${answer.seenAtOnce ? '' : t.rules.notAtOnce}`.trim();
  };
  return (
    <Confirm
      title={t.rules.setTitle(t.rules.endpoints[before.endpoint])}
      text={t.rules.setText}
      verb={t.rules.set}
      isDangerous={level === 'L4'}
      canRun={isChanged && percent.trim() !== '' && share >= 0 && share <= 100}
      run={run}
      audit={{ subject: 'rules:admission' }}
      onClose={onClose}
      onDone={onDone}
    >
      <div class="form-grid">
        <Choice
          label={t.common.state}
          value={level}
          options={levels.map((one) => [one, t.rules.levels[one]] as const)}
          onPick={setLevel}
        />
        <TextField label={`${t.rules.percent} (%)`} type="number" value={percent} onInput={setPercent} />
      </div>
      <Facts
        facts={[
          [
            t.common.state,
            <>
              {t.rules.levels[before.level]} → <b>{t.rules.levels[level]}</b>
            </>,
          ],
          [
            t.rules.percent,
            <>
              {f.percent(before.percent / 100)} → <b>{Number.isFinite(share) ? f.percent(share / 100) : '–'}</b>
            </>,
          ],
        ]}
      />
    </Confirm>
  );
}

function Versions({
  current,
  onLoad,
}: {
  readonly current: StoredRules | null;
  readonly onLoad: (rules: JsonObject, from: number) => void;
}) {
  const { t, f } = useWords();
  const history = useResource<{ changes: readonly RuleChange[] }>('/admin/v1/rules/history', { query: { limit: 200 } });
  const [open, setOpen] = useState<number | null>(null);
  const old = useResource<StoredRules>(open === null ? null : `/admin/v1/rules/history/${open}`);
  const columns: readonly Column<RuleChange>[] = [
    {
      name: t.rules.tabs.versions,
      width: '160px',
      cell: ({ version }) => (
        <>
          <b class="number">{f.number(version)}</b>{' '}
          {version === current?.version && <Badge tone="ok">{t.rules.before}</Badge>}
        </>
      ),
    },
    { name: t.common.actor, cell: ({ actor }) => <Cut text={actor} /> },
    { name: t.common.at, width: '160px', cell: ({ at }) => <Time at={at} /> },
  ];
  return (
    <div class="halves">
      <Panel title={t.rules.history} hint={t.rules.rollBackHint} flush actions={<Freshness {...history} />}>
        <Shown of={history}>
          {({ changes }) => (
            <Table
              label={t.rules.history}
              columns={columns}
              rows={changes}
              keyOf={({ version }) => String(version)}
              onOpen={({ version }) => setOpen(version)}
              isOpen={({ version }) => version === open}
              empty={<Empty title={t.rules.emptyHistory} icon="rules" />}
            />
          )}
        </Shown>
      </Panel>
      {open !== null && (
        <Panel
          title={t.rules.version(f.number(open))}
          flush
          actions={
            old.data &&
            current &&
            open !== current.version && (
              <Button kind="main" onClick={() => onLoad(old.data?.rules ?? {}, current.version)}>
                {t.rules.load}
              </Button>
            )
          }
        >
          <Shown of={old}>
            {({ rules }) => (
              <Diff
                before={current?.rules ?? {}}
                after={rules}
                names={[t.rules.before, t.rules.version(f.number(open))]}
                nameOf={(path) => ruleTitle(path, t.rules)}
              />
            )}
          </Shown>
        </Panel>
      )}
    </div>
  );
}

function InForce({ status }: { readonly status: Resource<RulesStatus> }) {
  const { t, f } = useWords();
  const columns: readonly Column<RulesStatus['apis'][number]>[] = [
    { name: t.rules.api, cell: ({ host, pid }) => <Id text={`${host}:${pid}`} /> },
    {
      name: t.health.version,
      isNumber: true,
      width: '110px',
      cell: ({ version }) => (version === null ? '–' : f.number(version)),
    },
    {
      name: t.common.state,
      width: '170px',
      cell: ({ follows }) => <Badge tone={follows ? 'ok' : 'bad'}>{follows ? t.rules.follows : t.rules.behind}</Badge>,
    },
    {
      name: t.common.details,
      hides: 'phone',
      cell: ({ refused }) =>
        refused === null ? (
          <span class="faint">–</span>
        ) : (
          <span class="cut" title={refused.reasons.join('\n')}>
            {t.rules.cannotUse(f.number(refused.version))}: <span lang="en">{refused.reasons.join(' ')}</span>
          </span>
        ),
    },
  ];
  return (
    <Panel title={t.rules.tabs['in-force']} actions={<Freshness {...status} />}>
      <Shown of={status}>
        {(data) => (
          <>
            <RulesInForce status={data} />
            <Table
              label={t.rules.tabs['in-force']}
              columns={columns}
              rows={data.apis}
              keyOf={({ host, pid }) => `${host}:${pid}`}
              empty={<Empty title={t.rules.nowhere} icon="health" />}
            />
          </>
        )}
      </Shown>
    </Panel>
  );
}
