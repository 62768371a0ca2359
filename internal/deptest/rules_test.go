package deptest

// layer says which packages of the project one package may import outside its
// tests. Names are paths below the module's root, "." is the root package.
type layer struct {
	pkg    string   // a path, or a path and "/..." for everything below it
	may    []string // likewise; "*" is every package that is not a development tool
	reason string
}

// layers goes from the bottom up. The first line that fits a package counts.
var layers = []layer{
	{"internal/rawjson", nil, "bytes in, bytes out"},
	{"internal/names", nil, "names of directories, for whoever looks for them"},
	{"internal/envvar", nil, "what values mean, for whoever reads them"},
	{"internal/gitdir", nil, "a path in, a path out"},
	{"internal/safeopen", nil, "a path in, what it names out, or an error"},
	{"internal/readfile", nil, "a path in, its content out"},
	{"message", []string{"internal/rawjson"}, "the stream's types are what everybody shares, so they know nobody"},
	{"permission", []string{"message", "internal/shell", "internal/names"}, "a decision is a pure function of rules, mode and accesses"},
	{"tool", []string{"message", "permission"}, "a tool can be written against this package alone, without the engine"},
	{"hook", []string{"message", "permission"}, "what hooks say is data; running them is the engine's job"},
	{"model", []string{"message"}, "retries and errors are shared by all providers, so they know none"},
	{"model/...", []string{"message", "model", "internal/rawjson", "internal/readfile"}, "a provider translates at its edge and knows no loop"},
	{"session", []string{"message"}, "a store keeps lines and never looks inside them; the public interface shows no internal type"},
	{"session/internal/place", nil, "which directory a session belongs to, whatever keeps it"},
	{"session/internal/leased", []string{"session", "session/internal/place"}, "who may write is decided without a word of SQL, so that a test in fake time can try it"},
	{"session/internal/leasetest", []string{"session", "session/storetest"}, "tests that several stores share start processes that know only how to open a store"},
	{"session/sqlite", []string{"session", "session/internal/leased"}, "only the SQL is a database's own"},
	{"session/postgres", []string{"session", "session/internal/leased"}, "only the SQL is a database's own"},
	{"session/file", []string{"session", "session/internal/place", "internal/vfs", "internal/names"}, "all disk access of the file store goes through vfs, so that tests can make every write fail"},
	{"session/...", []string{"session"}, "stores and their suite know the interface only"},

	{"internal/shell", nil, "reading a command is text in, parts out"},
	{"internal/vfs", nil, "a file system knows nothing of what is kept in it"},
	{"internal/apiblock", []string{"message", "internal/rawjson"}, "blocks in, blocks out"},
	{"internal/history", []string{"message", "internal/apiblock", "internal/rawjson"}, "history is data and pure functions on it"},
	{"internal/budget", []string{"message"}, "the ledger adds up; prices come in from outside"},
	{"internal/loop", []string{"message", "internal/history"}, "the machine decides and never does; the ledger, the model and the tools are outside"},
	{"internal/search", []string{"internal/gitdir", "internal/safeopen"}, "searching files needs to know nothing of tools, sessions and rules"},
	{"internal/proc", nil, "processes know nothing of who starts them"},
	{"internal/journal", []string{"message", "session", "internal/rawjson", "internal/history", "internal/loop"}, "the codec between the machine's entries and a store's lines needs both and nothing that runs"},
	{"internal/explain", []string{"message", "session", "internal/loop", "internal/journal"}, "lines in, reasons out"},
	{"internal/replay", []string{"message", "session", "internal/history", "internal/loop", "internal/journal"}, "lines in, the first difference out"},
	{"internal/hookrun", []string{"message", "hook", "internal/proc"}, "running hooks needs to know what they are and nothing of the loop"},
	{"internal/pdf", nil, "a format of files, without the project"},
	{"internal/instructions", []string{"internal/names"}, "files in, text out; what is done with the text is the engine's"},
	{"internal/builtin", []string{"internal/envvar", "internal/apiblock", "message", "permission", "tool", "internal/pdf", "internal/shell", "internal/search", "internal/proc", "internal/safeopen"}, "built-in tools use only what any tool can use"},
	{"internal/mcp", []string{"message", "permission", "tool"}, "MCP tools are tools like any other"},
	{"internal/project/settings", []string{"permission", "internal/rawjson", "internal/names", "internal/gitdir"}, "settings become values and rules; nothing is started and nothing written"},
	{"internal/project", []string{"message", "permission", "hook", "tool"}, "what is read from disk becomes rules, hooks and texts, and starts nothing"},
	{"internal/checkpoint", []string{"permission", "internal/vfs", "internal/safeopen"}, "files and their states; who changes them and when is the engine's"},
	{"internal/permfile", []string{"permission", "internal/names", "internal/search"}, "writes what an update says into a settings file, and decides nothing"},
	{"internal/engine", []string{
		"message", "model", "tool", "permission", "hook", "session",
		"internal/history", "internal/budget", "internal/loop", "internal/journal", "internal/project", "internal/mcp", "internal/instructions", "internal/hookrun", "internal/envvar", "internal/rawjson", "internal/checkpoint",
	}, "the driver gets tools, model and store handed in, so that tests and other hosts choose them; it does not know the public API"},

	{"agenttest", []string{"message"}, "the scripted server judges requests by the API's rules; it must not share code, and faults, with the client that makes them"},
	{".", []string{
		"message", "model", "model/...", "tool", "permission", "hook", "session", "session/file",
		"internal/engine", "internal/builtin", "internal/permfile", "internal/budget", "internal/loop", "internal/history", "internal/journal", "internal/project", "internal/project/settings", "internal/names", "internal/envvar", "internal/gitdir", "internal/readfile", "internal/mcp", "internal/instructions", "internal/explain", "internal/replay",
		"internal/checkpoint", "internal/vfs",
	}, "the public API is thin and on top; only the command is above it"},
	{"internal/wire", []string{"message"}, "frames only: what they mean is said through an interface, so that the protocol can be tested without an engine"},
	{"internal/demo", []string{".", "agenttest", "message"}, "the demo takes the path that every user takes"},
	{"cmd/...", []string{"*"}, "flags to options"},

	{"internal/crash", []string{"agenttest"}, "a scripted model, for tests of whole sessions"},
	{"internal/conform", nil, "tests everywhere import it"},
	{"internal/conform/...", []string{"internal/conform", "internal/conform/..."}, "reads sources, runs nothing of the project"},
	{"internal/ci", nil, "must work while the rest does not compile"},
	{"internal/deptest", nil, "must work while the rest does not compile"},
	{"bench/...", []string{"*"}, "benchmarks compare everything"},
}

// developmentTools may be imported by tests and by each other only.
var developmentTools = []string{"internal/crash", "internal/conform", "internal/conform/...", "internal/ci", "internal/deptest", "bench/..."}

// ban forbids imports from outside the project.
type ban struct {
	pkg     string   // as in layer
	imports []string // import paths; "net/..." is net and everything below it
	deep    bool     // also through other packages
	except  string   // files of pkg that may import directly, all the same
	reason  string
}

var bans = []ban{
	{"internal/loop", []string{"net/...", "os/...", "syscall", "io/...", "log/..."}, false, "", "the machine has no I/O"},
	{"internal/loop", []string{"encoding/json"}, false, "", "payloads are opaque bytes to the machine"},
	{"internal/loop", []string{"math/rand/...", "crypto/rand"}, false, "", "ids come in with the Stamp: a replay gives the same bytes"},
	{"internal/loop", []string{"sync/...", "context", "runtime/..."}, false, "", "the machine has no goroutine and waits for nothing"},
	{"internal/loop", []string{"net/...", "os/exec", "math/rand/...", "crypto/rand"}, true, "", "nor may the packages it stands on bring I/O or chance"},
	{"internal/history", []string{"net/...", "os/...", "syscall", "math/rand/...", "crypto/rand", "sync/...", "context"}, false, "", "history is pure"},
	{"message", []string{"net/...", "os/...", "syscall", "math/rand/...", "crypto/rand"}, false, "", "messages are data"},
	{"internal/budget", []string{"net/...", "os/...", "syscall", "math/rand/..."}, false, "", "the ledger is arithmetic"},
	{"permission", []string{"net/...", "os/exec", "os/signal"}, true, "", "a decision runs nothing and asks nobody"},
	{"permission", []string{"os"}, false, "access.go disk.go links.go named.go", "paths come in as written and as resolved; only resolving, and looking at what a command will meet, touch the disk"},
}

// purePackages use neither the clock nor goroutines, channels and select: what
// depends on them cannot be replayed.
var purePackages = []string{"internal/loop", "internal/history"}

// heavy modules are named only for the better reason that they print: what is
// not in modules below is refused anyway.
var heavy = map[string]string{
	"github.com/anthropics/anthropic-sdk-go": "+10.6 MiB and minutes of cold build; it is a second reader in interop/ only",
	"github.com/openai/openai-go":            "+22 MiB; belongs in a module of its own",
	"cloud.google.com/go":                    "+20 MiB (Vertex); belongs in a module of its own",
	"go.temporal.io/sdk":                     "+19 MiB; belongs in a module of its own",
	"go.opentelemetry.io/otel":               "+12 MiB with the OTLP exporter; belongs in a module of its own",
	"github.com/charmbracelet/bubbletea":     "+10 MiB (terminal UI); belongs in a module of its own",
}

// modules are all that the library and the command may stand on outside their
// tests, with what each is for. A new one needs its reason here.
var modules = []struct{ path, users, reason string }{
	{"github.com/google/jsonschema-go", "*", "tool schemas from Go types; validation of tool input"},
	{"golang.org/x/text", "*", "Unicode normalisation of paths (S-13)"},
	{"mvdan.cc/sh/v3", "*", "the parser of shell commands, for permission: rules look at every command in a line (P-59)"},
	{"github.com/bmatcuk/doublestar/v4", "*", "globs of rules and of excluded instruction files (C-54, C-60)"},
	{"github.com/google/uuid", "*", "UUIDs of sessions and messages"},
	{"golang.org/x/sys", "*", "system calls for locks and processes"},
	{"golang.org/x/net", "*", "its httpproxy package: which proxy a request goes through, from variables that need not be the process's (K-250)"},
	{"golang.org/x/term", "cmd/...", "tells a terminal from a pipe, on every system"},
	{"github.com/rogpeppe/go-internal", "*", "its diff package: the patch that Write shows, the lines that a rewind changes; the rest serves the tests"},
	{"golang.org/x/image", "*", "scaling images down and decoding WebP (T-53)"},
	{"pgregory.net/rapid", "session/storetest", "random histories in the suite that every store passes; never in a program"},
	{"github.com/tailscale/hujson", "*", "internal/permfile edits a settings file and keeps its order and layout"},
	{"github.com/spf13/cobra", "cmd/...", "completion scripts; they ask the program, so they know its flags"},
	{"github.com/spf13/pflag", "cmd/...", "the flags of the command line"},
	{"github.com/jackc/pgx/v5", "session/postgres", "the driver of PostgreSQL, for who imports that store; neither the library nor the command carries it"},
	{"github.com/jackc/puddle/v2", "session/postgres", "used by pgx for its pool"},
	{"github.com/jackc/pgpassfile", "session/postgres", "used by pgx"},
	{"github.com/jackc/pgservicefile", "session/postgres", "used by pgx"},
	{"golang.org/x/sync", "session/postgres", "used by pgx for its pool"},
	{"modernc.org/sqlite", "session/sqlite", "SQLite without a C compiler, for who imports that store; neither the library nor the command carries it"},
	{"modernc.org/libc", "session/sqlite", "used by modernc.org/sqlite"},
	{"modernc.org/mathutil", "session/sqlite", "used by modernc.org/sqlite"},
	{"modernc.org/memory", "session/sqlite", "used by modernc.org/sqlite"},
	{"github.com/dustin/go-humanize", "session/sqlite", "used by modernc.org/sqlite"},
	{"github.com/mattn/go-isatty", "session/sqlite", "used by modernc.org/sqlite"},
	{"github.com/ncruces/go-strftime", "session/sqlite", "used by modernc.org/sqlite"},
	{"github.com/remyoudompheng/bigfft", "session/sqlite", "used by modernc.org/sqlite"},
	{"github.com/inconshreveable/mousetrap", "cmd/...", "used by cobra on Windows"},
}
