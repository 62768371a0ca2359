package permission

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// links remembers, for one decision, which names on disk are links and where
// they lead: the paths in a command mostly begin with the same directories.
type links struct {
	read    map[string]link
	found   map[string]resolved
	foreign map[string]bool // of foreignRepository, by directory
}

// link is what a name on disk is: a link to something, something else, or
// nothing.
type link struct {
	to   string // "" for everything else
	gone bool
	err  error
	way  way // of a clean absolute path
}

// way says whether a path goes through links, itself among them.
type way int8

const (
	unlooked way = iota
	straight     // no link, as far as it exists
	crooked      // it may
)

// maxLinks bounds the symbolic links followed in one path, as the kernel does.
const maxLinks = 40

var errLinks = errors.New("too many symbolic links")

type resolved struct {
	path string
	err  error
}

// at looks at one name; the directory that it stands in must be resolved.
func (l *links) at(name string) link {
	if known, ok := l.read[name]; ok {
		return known
	}
	return l.keep(name, readLink(name))
}

func (l *links) keep(name string, k link) link {
	if l.read == nil {
		l.read = map[string]link{}
	}
	l.read[name] = k
	return k
}

func readLink(name string) (k link) {
	if runtime.GOOS != "windows" { // the usual answers, without what os makes for them
		var buf [128]byte
		switch n, err := syscall.Readlink(name, buf[:]); {
		case err == nil && n < len(buf):
			return link{to: string(buf[:n])}
		case err == syscall.EINVAL: // no link
			return link{}
		case err == syscall.ENOENT || err == syscall.ENOTDIR:
			return link{gone: true}
		}
	}
	to, err := os.Readlink(name)
	switch {
	case err == nil:
		k.to = to
	case errors.Is(err, syscall.EINVAL): // no link
	case missing(err):
		k.gone = true
	default:
		k.err = err
	}
	return k
}

// straight reports whether a path, absolute and clean, goes through no link.
// What it finds of a directory holds for all that is below it.
func (l *links) straight(path string) bool {
	if runtime.GOOS == "windows" {
		return false
	}
	if path == "/" {
		return true
	}
	k, ok := l.read[path]
	if ok && k.way != unlooked {
		return k.way == straight
	}
	k.way = crooked
	if dir := path[:max(1, strings.LastIndexByte(path, '/'))]; l.straight(dir) {
		if !ok && l.read[dir].gone {
			k.gone = true // as all that is in it
		} else if !ok {
			k = readLink(path)
		}
		k.way = crooked
		if k.to == "" && k.err == nil {
			k.way = straight
		}
		l.keep(path, k)
	}
	return k.way == straight
}

// resolve is Resolve, with what is remembered.
func (l *links) resolve(path string) (string, error) {
	if strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("path %q: contains a NUL byte", path)
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("path %q: not absolute", path)
	}
	path = clean(path)
	if known, ok := l.found[path]; ok {
		return known.path, known.err
	}
	if l.straight(path) {
		return path, nil
	}
	follow := l.follow
	if runtime.GOOS == "windows" { // it has more kinds of links and two names for files
		follow = followWindows
	}
	real, err := follow(path)
	if err != nil {
		err = fmt.Errorf("path %q: %w", path, err)
	}
	if l.found == nil {
		l.found = map[string]resolved{}
	}
	l.found[path] = resolved{real, err}
	return real, err
}

// follow goes through an absolute path as the kernel does. What does not exist
// is taken as if it were made meanwhile.
func (l *links) follow(path string) (string, error) {
	at, rest, count := "/", path[1:], 0
	gone := false // what follows does not exist
	for rest != "" {
		part, more, _ := strings.Cut(rest, "/")
		rest = more
		switch part {
		case "", ".":
			continue
		case "..":
			at, gone = filepath.Dir(at), false
			continue
		}
		next := strings.TrimSuffix(at, "/") + "/" + part
		if gone {
			at = next
			continue
		}
		k := l.at(next)
		switch {
		case k.err != nil:
			return "", k.err
		case k.to != "":
			if count++; count > maxLinks {
				return "", errLinks
			}
			if filepath.IsAbs(k.to) {
				at = "/"
			}
			rest = k.to + "/" + rest
			continue
		}
		gone = k.gone
		at = next
	}
	return at, nil
}

// followWindows is follow by what the system offers.
func followWindows(path string) (string, error) {
	rest := ""
	for links := 0; ; {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !missing(err) {
			return "", err
		}
		// EvalSymlinks fails for a dangling link as for a missing file. The
		// link is followed by hand, so that writing through it is judged by
		// the place where the bytes would land.
		if to, err := os.Readlink(path); err == nil {
			if links++; links > maxLinks {
				return "", errLinks
			}
			if !filepath.IsAbs(to) {
				// Relative to the directory that really holds the link.
				dir, err := filepath.EvalSymlinks(filepath.Dir(path))
				if err != nil {
					return "", err
				}
				to = filepath.Join(dir, to)
			}
			path = filepath.Clean(to)
			continue
		}
		parent := filepath.Dir(path)
		if parent == path {
			return filepath.Join(path, rest), nil
		}
		rest = filepath.Join(filepath.Base(path), rest)
		path = parent
	}
}

// access returns the access to a path in a command: path is absolute or relative
// to dir. Programs hand it to the kernel as it is, which goes through links
// before it takes "..": Target follows it, Written does not.
func (l *links) access(kind Kind, dir, path string) (Access, error) {
	if !filepath.IsAbs(path) {
		if !filepath.IsAbs(dir) {
			return Access{}, fmt.Errorf("path %q: relative to an unknown directory", path)
		}
		path = dir + string(filepath.Separator) + path
	}
	if !strings.Contains(path, "..") && strings.IndexByte(path, 0) < 0 && !ofProcess(path) {
		if name := clean(path); l.straight(name) { // as most are
			return Access{Kind: kind, Target: name, Written: name}, nil
		}
	}
	if l.perProcess(path) {
		return Access{}, fmt.Errorf("path %q: is another file in each process", path)
	}
	target, err := l.resolve(path)
	a := Access{Kind: kind, Target: target, Written: filepath.Clean(path)}
	if err != nil || !strings.Contains(path, "..") {
		return a, err
	}
	at := filepath.VolumeName(path) + string(filepath.Separator)
	for _, part := range strings.FieldsFunc(path[len(filepath.VolumeName(path)):], func(r rune) bool { return r == '/' || r == filepath.Separator }) {
		switch part {
		case ".":
			continue
		case "..":
			if at, err = l.resolve(at); err != nil {
				return Access{}, err
			}
			at = filepath.Dir(at)
		default:
			at = filepath.Join(at, part)
		}
	}
	a.Target, err = l.resolve(at)
	return a, err
}

// perProcess reports whether a path goes through files that are others in every
// process, such as /proc/self/cwd, itself or by a link.
func (l *links) perProcess(name string) bool {
	name = filepath.ToSlash(name)
	for range maxLinks {
		if ofProcess(name) {
			return true
		}
		next := ""
		for i := 1; i <= len(name) && next == ""; i++ {
			if i < len(name) && name[i] != '/' || name[i-1] == '/' {
				continue
			}
			at := name[:i]
			k := l.at(at)
			switch at {
			case "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd":
				continue
			}
			if k.to == "" {
				continue
			}
			next = k.to + "/" + name[i:]
			if !strings.HasPrefix(k.to, "/") {
				next = at[:strings.LastIndexByte(at, '/')+1] + next
			}
		}
		if next == "" {
			return false
		}
		name = next
	}
	return true
}

// ofProcess reports whether a path as it stands names something of a process.
func ofProcess(name string) bool {
	if !strings.Contains(name, "proc") && !strings.Contains(name, "fd") {
		return false
	}
	for _, form := range []string{name, filepath.Clean(name)} {
		parts := strings.FieldsFunc(filepath.ToSlash(form), func(r rune) bool { return r == '/' })
		if len(parts) > 2 && parts[0] == "proc" && (parts[1] == "self" || parts[1] == "thread-self" || strings.Trim(parts[1], "0123456789") == "") ||
			len(parts) > 3 && parts[0] == "dev" && parts[1] == "fd" {
			return true
		}
	}
	return false
}
