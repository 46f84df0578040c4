// Asks R13 (npm @oh-my-pi/pi-coding-agent 13.19.0) about session files: JSON lines in, JSON lines out, one process for all.
//
//     OUR_PROMPTS=…/prompts bun --preload …/omp-prompts.ts …/omp.ts      in a folder where the package is installed
//
// A question is {"id", "question", "file", "args"?}; its answer is {"id", "ok"} or {"id", "error"}, in the order of the questions.
// A line {"ready": true} comes first. Entries (`leaf`, `target` and all in answers) are told by their place in the file, from 0:
// version 1 gives them no ids. The default leaf is the last. Set HOME to an empty folder.
//
//   context   {leaf?}                                  agent messages, state, model messages
//   prepare   {leaf?, settings?}                       what a compaction would summarise and keep, or null
//   requests  {leaf?, settings?, parts?, instructions?, prompt?, context?, replies?}   the requests of that compaction and its result
//             parts {history, prefix, recent, previous, firstKept, isSplitTurn, tokensBefore, fileOps}: a preparation to go on from,
//             entries by their place in the file; without it R13 prepares by itself
//   prune     {leaf?, protectTokens?, minimumSavings?, protectedTools?}        what pruning blanks
//   branch    {leaf?, target, tokenBudget?, instructions?, contextWindow?, reserveTokens?}   what is left behind, its request
//   render    {template, values?}                      a filled template (no file)
//   convert   {messages}                               model messages of made-up agent messages (no file)
//   open      {}                                       what the agent's own session manager makes of a copy of the file
//   write     {turns, reopen?, close?}                 appends turns to the file itself; the session manager stays open; gives their ids
import { createInterface } from "node:readline";
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const scope = `${process.cwd()}/node_modules/@oh-my-pi`;
const agent = `${scope}/pi-coding-agent/src`;
const session = await import(`${agent}/session/session-manager`);
const { convertToLlm } = await import(`${agent}/session/messages`);
const compaction = await import(`${agent}/session/compaction/compaction`);
const pruning = await import(`${agent}/session/compaction/pruning`);
const branching = await import(`${agent}/session/compaction/branch-summarization`);
const { computeFileLists, serializeConversation } = await import(`${agent}/session/compaction/utils`);
const { renderPromptTemplate } = await import(`${agent}/config/prompt-templates`);
const { registerCustomApi } = await import(`${scope}/pi-ai/src/api-registry`);

type Json = any;
type Request = { system: string; prompt: string; maxTokens: number; reply: string };

// A model that writes down what it is asked, and answers from a list.
let recorded: Request[] = [];
let replies: string[] = [];
registerCustomApi("recorder", (_model: Json, context: Json, options: Json) => {
	const reply = replies[recorded.length] ?? `Reply ${recorded.length + 1}.`;
	const prompt = context.messages.map((message: Json) => message.content.map((block: Json) => block.text).join("")).join("\n");
	recorded.push({ system: context.systemPrompt, prompt, maxTokens: options?.maxTokens, reply });
	const message = { role: "assistant", content: [{ type: "text", text: reply }], stopReason: "stop" };
	return { result: async () => message } as Json;
});

function recorder(contextWindow = 128000): Json {
	const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
	const model = { id: "recorder", name: "recorder", api: "recorder", provider: "recorder", baseUrl: "http://127.0.0.1:9" };
	return { ...model, reasoning: false, input: ["text"], cost, contextWindow, maxTokens: 1e9 };
}

async function recording(answers: string[] | undefined, work: () => Promise<Json>) {
	recorded = [];
	replies = answers ?? [];
	const result = await work();
	return { result, requests: recorded };
}

// A line can be any JSON.
const isObject = (record: Json) => typeof record === "object" && record !== null && !Array.isArray(record);

function read(file: string) {
	const records: Json[] = session.parseSessionEntries(readFileSync(file, "utf8")).filter(isObject);
	session.migrateSessionEntries(records);
	const entries = records.filter(record => record.type !== "session" && record.type !== "title");
	const byId = new Map<string, Json>(entries.map(entry => [entry.id, entry]));
	return { entries, byId };
}

function branchOf(byId: Map<string, Json>, leaf: string | null | undefined) {
	const branch: Json[] = [];
	const seen = new Set<string>();
	let entry = leaf ? byId.get(leaf) : undefined;
	while (entry && !seen.has(entry.id)) {
		seen.add(entry.id);
		branch.push(entry);
		entry = entry.parentId ? byId.get(entry.parentId) : undefined;
	}
	return branch.reverse();
}

const transcript = (messages: Json[]) => serializeConversation(convertToLlm(messages));
const targetOf = (args: Json, entries: Json[]) => entries[args.target].id;
const settingsOf = (args: Json) => ({ ...compaction.DEFAULT_COMPACTION_SETTINGS, ...args.settings });

// A preparation of the asker's choice.
function preparationOf(args: Json, entries: Json[]) {
	const { parts } = args;
	const messageOf = (entry: Json) =>
		entry.type === "message"
			? [entry.message]
			: session.buildSessionContext([{ ...entry, parentId: null }], entry.id).messages;
	const messages = (places: number[]) => places.flatMap(place => messageOf(entries[place]));
	const previous = parts.previous === null ? undefined : entries[parts.previous];
	const { read, written, edited } = parts.fileOps;
	return {
		firstKeptEntryId: entries[parts.firstKept].id,
		messagesToSummarize: messages(parts.history),
		turnPrefixMessages: messages(parts.prefix),
		recentMessages: messages(parts.recent),
		isSplitTurn: parts.isSplitTurn,
		tokensBefore: parts.tokensBefore,
		previousSummary: previous?.summary,
		previousPreserveData: previous?.preserveData,
		fileOps: { read: new Set(read), written: new Set(written), edited: new Set(edited) },
		settings: settingsOf(args),
	};
}

// The questions about one file; `leaf` is the id that the branch ends with.
const aboutFile: Record<string, (args: Json, file: ReturnType<typeof read>, leaf: string | null) => Json> = {
	context(args, { entries, byId }) {
		const context = session.buildSessionContext(entries, args.leaf, byId);
		return { entries: entries.length, context, modelMessages: convertToLlm(context.messages) };
	},

	prepare(args, { entries, byId }, leaf) {
		const branch = branchOf(byId, leaf);
		const preparation = compaction.prepareCompaction(branch, settingsOf(args));
		if (!preparation) return null;
		// Entries that are messages hand their message on, so their place in the file can be found again; the others have null.
		const placeOf = new Map(entries.map((entry, place) => [entry.type === "message" ? entry.message : entry, place]));
		const places = (messages: Json[]) => messages.map(message => placeOf.get(message) ?? null);
		const { messagesToSummarize, turnPrefixMessages, recentMessages, fileOps } = preparation;
		return {
			...preparation,
			fileOps: computeFileLists(fileOps),
			firstKept: entries.findIndex(entry => entry.id === preparation.firstKeptEntryId),
			// The messages themselves would be most of the answer, and the question about the context has them already.
			messagesToSummarize: places(messagesToSummarize),
			turnPrefixMessages: places(turnPrefixMessages),
			recentMessages: places(recentMessages),
		};
	},

	async requests(args, { entries, byId }, leaf) {
		const preparation = args.parts
			? preparationOf(args, entries)
			: compaction.prepareCompaction(branchOf(byId, leaf), settingsOf(args));
		if (!preparation) return null;
		const options = { promptOverride: args.prompt, extraContext: args.context };
		return recording(args.replies, () =>
			compaction.compact(preparation, recorder(), "key", args.instructions, undefined, options),
		);
	},

	prune(args, { entries, byId }, leaf) {
		const config = { ...pruning.DEFAULT_PRUNE_CONFIG };
		for (const key of Object.keys(config)) if (args[key] !== undefined) config[key] = args[key];
		const branch = branchOf(byId, leaf);
		const before = new Set(branch.filter(entry => entry.message?.prunedAt !== undefined));
		const result = pruning.pruneToolOutputs(branch, config);
		const changed = branch.filter(entry => entry.message?.prunedAt !== undefined && !before.has(entry));
		return { ...result, changed: changed.map(entry => ({ place: entries.indexOf(entry), content: entry.message.content })) };
	},

	async branch(args, { entries: all, byId }, leaf) {
		const tree = { getBranch: (id: string) => branchOf(byId, id), getEntry: (id: string) => byId.get(id) };
		const { entries, commonAncestorId } = branching.collectEntriesForBranchSummary(tree, leaf, targetOf(args, all));
		const prepared = branching.prepareBranchEntries(entries, args.tokenBudget ?? 0);
		const options = {
			model: recorder(args.contextWindow),
			apiKey: "key",
			signal: new AbortController().signal,
			customInstructions: args.instructions,
			reserveTokens: args.reserveTokens,
		};
		const { result, requests } = await recording(args.replies, () => branching.generateBranchSummary(entries, options));
		return {
			commonAncestorId,
			commonAncestor: commonAncestorId === null ? null : all.findIndex(entry => entry.id === commonAncestorId),
			abandoned: entries.map((entry: Json) => all.indexOf(entry)),
			transcript: transcript(prepared.messages),
			files: computeFileLists(prepared.fileOps),
			tokens: prepared.totalTokens,
			requests,
			result,
		};
	},
};

async function open(file: string) {
	// Opening can rewrite the file, so it gets a copy.
	const folder = mkdtempSync(join(tmpdir(), "session-"));
	try {
		const copy = join(folder, "session.jsonl");
		copyFileSync(file, copy);
		const manager = await session.SessionManager.open(copy, folder);
		const context = manager.buildSessionContext();
		return {
			context,
			leaf: manager.getLeafId(),
			sessionId: manager.getSessionId(),
			entries: manager.getEntries().map((entry: Json) => entry.id),
			rewritten: !readFileSync(file).equals(readFileSync(copy)),
		};
	} finally {
		rmSync(folder, { recursive: true });
	}
}

// Session managers that stay open between questions, as in a live agent.
const live = new Map<string, Json>();

async function write(file: string, args: Json) {
	let manager = live.get(file);
	if (manager && (args.reopen || args.close)) {
		await manager.close();
		live.delete(file);
		manager = undefined;
	}
	if (args.close) return [];
	if (!manager) {
		manager = await session.SessionManager.open(file, dirname(file));
		live.set(file, manager);
	}
	const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };
	const ids: string[] = [];
	const append = async (message: Json) => {
		ids.push(manager.appendMessage({ ...message, timestamp: Date.now() }));
		if (Math.random() < 0.7) await manager.flush();
		if (Math.random() < 0.5) await Bun.sleep(Math.random() * 4);
	};
	for (let turn = 0; turn < args.turns; turn++) {
		const call = `call_${Date.now()}_${turn}`;
		await append({ role: "user", content: [{ type: "text", text: `Look at file ${turn}. `.repeat(10) }] });
		const content = [{ type: "toolCall", id: call, name: "bash", arguments: { command: `cat src/${turn}.rs` } }];
		await append({ role: "assistant", content, api: "x", provider: "x", model: "x", usage, stopReason: "toolUse" });
		await append({ role: "toolResult", toolCallId: call, toolName: "bash", content: [{ type: "text", text: "line of output\n".repeat(60) }], isError: false });
	}
	await manager.flush();
	return ids;
}

async function answer(question: string, file: string, args: Json): Promise<Json> {
	if (question === "open") return open(file);
	if (question === "write") return write(file, args);
	if (question === "render") return renderPromptTemplate(args.template, args.values);
	if (question === "convert") return convertToLlm(args.messages);
	const about = aboutFile[question];
	if (!about) throw new Error(`unknown question "${question}"`);
	const parsed = read(file);
	const leaf = args.leaf === undefined ? undefined : parsed.entries[args.leaf].id;
	return about({ ...args, leaf }, parsed, leaf ?? parsed.entries.at(-1)?.id ?? null);
}

const out = Bun.stdout.writer();
async function say(line: Json) {
	out.write(`${JSON.stringify(line)}\n`);
	await out.flush();
}

await say({ ready: true });
for await (const line of createInterface({ input: process.stdin })) {
	if (!line.trim()) continue;
	let id: Json = null;
	try {
		const asked = JSON.parse(line);
		id = asked.id;
		await say({ id, ok: (await answer(asked.question, asked.file, asked.args ?? {})) ?? null });
	} catch (error) {
		await say({ id, error: String(error) });
	}
}
// Something that R13 loads keeps the process alive.
await out.end();
process.exit(0);
