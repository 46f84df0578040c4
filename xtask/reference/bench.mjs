// Lets a reference program do what sesstool's reading commands do, once, on one file, in one process.
//
//     node …/bench.mjs pi check|context FILE      in a folder where the packages are installed
//     bun  …/bench.mjs omp check|context FILE     (set HOME to an empty folder)
//
//   check     read the file, build the context, estimate its tokens, print the sum
//   context   read the file, build the context, print the model messages, one a line
import { readFileSync, writeSync } from "node:fs";

const [which, what, file] = process.argv.slice(2);
const packages = `${process.cwd()}/node_modules`;
const [session, messages, compaction] =
	which === "pi"
		? await load(`${packages}/@earendil-works/pi-coding-agent/dist/core`, "session-manager.js", "messages.js", "compaction/compaction.js")
		: await load(`${packages}/@oh-my-pi/pi-coding-agent/src/session`, "session-manager", "messages", "compaction/compaction");

function load(folder, ...modules) {
	return Promise.all(modules.map(module => import(`${folder}/${module}`)));
}

const records = session.parseSessionEntries(readFileSync(file, "utf8"));
session.migrateSessionEntries?.(records);
const entries = records.filter(record => record.type !== "session" && record.type !== "title");
const context = session.buildSessionContext(entries);
if (what === "check") {
	const tokens = context.messages.reduce((sum, message) => sum + compaction.estimateTokens(message), 0);
	writeSync(1, `${tokens}\n`);
} else {
	for (const message of messages.convertToLlm(context.messages)) writeSync(1, `${JSON.stringify(message)}\n`);
}
