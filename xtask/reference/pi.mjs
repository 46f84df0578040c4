// Asks P1 (npm @earendil-works/pi-coding-agent 1.6.0) about session files: JSON lines in, JSON lines out, one process for all.
//
//     node …/pi.mjs      in a folder where the package is installed
//
// Questions and answers have the form that omp.ts describes. Entries are told by their place in the file, from 0.
//
//   context   {leaf?}              agent messages, state, model messages
//   prepare   {leaf?, settings?}   what a compaction would summarise and keep, or null
//   branch    {leaf?, target}      the common ancestor and the entries left behind
//   convert   {messages}           model messages of made-up agent messages (no file)
//   open      {}                   what the agent's own session manager makes of a copy of the file
//   write     {turns, reopen?, close?}   appends turns to the file itself; the session manager stays open; gives their ids
import { createInterface } from "node:readline";
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const core = `${process.cwd()}/node_modules/@earendil-works/pi-coding-agent/dist/core`;
const session = await import(`${core}/session-manager.js`);
const { convertToLlm } = await import(`${core}/messages.js`);
const compaction = await import(`${core}/compaction/compaction.js`);
const branching = await import(`${core}/compaction/branch-summarization.js`);
const { computeFileLists } = await import(`${core}/compaction/utils.js`);

// A line can be any JSON.
const isObject = record => typeof record === "object" && record !== null && !Array.isArray(record);

function read(file) {
	const records = session.parseSessionEntries(readFileSync(file, "utf8")).filter(isObject);
	session.migrateSessionEntries(records);
	const entries = records.filter(record => record.type !== "session" && record.type !== "title");
	return { entries, byId: new Map(entries.map(entry => [entry.id, entry])) };
}

function branchOf(byId, leaf) {
	const branch = [];
	const seen = new Set();
	let entry = leaf ? byId.get(leaf) : undefined;
	while (entry && !seen.has(entry.id)) {
		seen.add(entry.id);
		branch.push(entry);
		entry = entry.parentId ? byId.get(entry.parentId) : undefined;
	}
	return branch.reverse();
}

const aboutFile = {
	context(args, { entries, byId }) {
		const context = session.buildSessionContext(entries, args.leaf, byId);
		return { entries: entries.length, context, modelMessages: convertToLlm(context.messages) };
	},

	prepare(args, { entries, byId }, leaf) {
		const settings = { ...compaction.DEFAULT_COMPACTION_SETTINGS, ...args.settings };
		const preparation = compaction.prepareCompaction(branchOf(byId, leaf), settings);
		if (!preparation) return null;
		const firstKept = entries.findIndex(entry => entry.id === preparation.firstKeptEntryId);
		return { ...preparation, firstKept, fileOps: computeFileLists(preparation.fileOps) };
	},

	branch(args, { entries: all, byId }, leaf) {
		const tree = { getBranch: id => branchOf(byId, id), getEntry: id => byId.get(id) };
		const { entries, commonAncestorId } = branching.collectEntriesForBranchSummary(tree, leaf, all[args.target].id);
		const commonAncestor = commonAncestorId === null ? null : all.findIndex(entry => entry.id === commonAncestorId);
		return { commonAncestor, abandoned: entries.map(entry => all.indexOf(entry)) };
	},
};

function open(file) {
	// Opening can rewrite the file, so it gets a copy.
	const folder = mkdtempSync(join(tmpdir(), "session-"));
	try {
		const copy = join(folder, "session.jsonl");
		copyFileSync(file, copy);
		const manager = session.SessionManager.open(copy, folder, folder);
		return {
			context: manager.buildSessionContext(),
			leaf: manager.getLeafId(),
			sessionId: manager.getSessionId(),
			entries: manager.getEntries().map(entry => entry.id),
			rewritten: !readFileSync(file).equals(readFileSync(copy)),
		};
	} finally {
		rmSync(folder, { recursive: true });
	}
}

// Session managers that stay open between questions, as in a live agent.
const live = new Map();

async function write(file, args) {
	if (args.reopen || args.close) live.delete(file);
	if (args.close) return [];
	if (!live.has(file)) live.set(file, session.SessionManager.open(file, dirname(file), dirname(file)));
	const manager = live.get(file);
	const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };
	const ids = [];
	const append = async message => {
		ids.push(manager.appendMessage({ ...message, timestamp: Date.now() }));
		if (Math.random() < 0.5) await new Promise(done => setTimeout(done, Math.random() * 4));
	};
	for (let turn = 0; turn < args.turns; turn++) {
		const call = `call_${Date.now()}_${turn}`;
		await append({ role: "user", content: [{ type: "text", text: `Look at file ${turn}. `.repeat(10) }] });
		const content = [{ type: "toolCall", id: call, name: "bash", arguments: { command: `cat src/${turn}.rs` } }];
		await append({ role: "assistant", content, api: "x", provider: "x", model: "x", usage, stopReason: "toolUse" });
		await append({ role: "toolResult", toolCallId: call, toolName: "bash", content: [{ type: "text", text: "line of output\n".repeat(60) }], isError: false });
	}
	return ids;
}

async function answer(question, file, args) {
	if (question === "open") return open(file);
	if (question === "write") return write(file, args);
	if (question === "convert") return convertToLlm(args.messages);
	const about = aboutFile[question];
	if (!about) throw new Error(`unknown question "${question}"`);
	const parsed = read(file);
	const leaf = args.leaf === undefined ? undefined : parsed.entries[args.leaf].id;
	return about({ ...args, leaf }, parsed, leaf ?? parsed.entries.at(-1)?.id ?? null);
}

const say = line => process.stdout.write(`${JSON.stringify(line)}\n`);

say({ ready: true });
for await (const line of createInterface({ input: process.stdin })) {
	if (!line.trim()) continue;
	let id = null;
	try {
		const asked = JSON.parse(line);
		id = asked.id;
		say({ id, ok: (await answer(asked.question, asked.file, asked.args ?? {})) ?? null });
	} catch (error) {
		say({ id, error: String(error) });
	}
}
